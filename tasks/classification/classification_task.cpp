#include "tasks/classification/classification_task.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "tasks/classification/evaluation.h"
#include "tasks/classification/model_options.h"

namespace finetune {
namespace {

std::vector<float> balanced_weights(const std::vector<int32_t>& labels, int64_t classes) {
  std::vector<int64_t> counts(static_cast<size_t>(classes));
  for (int32_t label : labels) ++counts[size_t(label)];
  int64_t occurring = classes - std::count(counts.begin(), counts.end(), 0);
  std::vector<float> weights;
  for (int64_t count : counts) {
    weights.push_back(
        count == 0 ? 1.0f : float(double(labels.size()) / (double(occurring) * double(count))));
  }
  return weights;
}

std::string describe_side(const char* name, const ClassificationSide& side, int64_t max_length) {
  std::string line = concat(name, ": ", side.set.examples, " rows, ",
                            describe_tokens(side.set.examples, int64_t(side.set.samples.ids.size()),
                                            side.set.truncated, max_length));
  if (side.dropped > 0) line += concat(", ", side.dropped, " unusable rows dropped");
  return line;
}

// Rows whose label, or one of whose labels, the model does not know.
int64_t rows_with_unknown(const ClassificationData& data) {
  int64_t known = data.labels.size(), rows = 0;
  for (int32_t label : data.eval.labels) rows += label >= known;
  for (int64_t i = 0; i < data.eval.label_sets.size(); ++i) {
    auto set = data.eval.label_sets[i];
    rows += !set.empty() && set.back() >= known;
  }
  return rows;
}

}  // namespace

ClassificationTask::ClassificationTask(const TaskOptions& options, const Tokenizer& tokenizer,
                                       const BertConfig& config, bool model_head)
    : options_(options), data_(load_classification_data(options, tokenizer, config, model_head)) {
  if (options.train_files.empty()) {
    class_weights_ = stored_class_weights(config, data_.labels.size());
  } else if (options.balanced_class_weights) {
    class_weights_ = balanced_weights(data_.train.labels, data_.labels.size());
  }
}

std::vector<std::string> ClassificationTask::describe() const {
  std::vector<std::string> lines;
  bool trains = !options_.train_files.empty();
  if (trains) lines.push_back(describe_side("train", data_.train, data_.max_length));
  if (data_.has_eval) lines.push_back(describe_side("eval", data_.eval, data_.max_length));
  lines.push_back(describe_labels(data_, options_));
  if (trains && data_.keeps_head) {
    lines.push_back(
        "the model's head fits and is kept, with its label order (--reinit-head "
        "starts with a new one)");
  }
  if (!data_.unknown_labels.empty()) {
    lines.push_back(
        describe_unknown_labels(data_, rows_with_unknown(data_), data_.eval.set.examples));
  }
  return lines;
}

double ClassificationTask::loss_denominator(std::span<const uint32_t> indices) const {
  if (class_weights_.empty()) return double(indices.size());
  double sum = 0;
  for (uint32_t i : indices) sum += double(class_weights_[size_t(data_.train.labels[i])]);
  return sum;
}

void ClassificationTask::reserve(Backend& backend, int64_t max_sequences) {
  max_sequences_ = max_sequences;
  size_t count = size_t(max_sequences);
  if (data_.problem == ProblemType::single_label) {
    targets_ = backend.allocate(count * sizeof(int32_t));
    label_staging_.resize(count);
  } else {
    size_t values = count * size_t(data_.outputs());
    targets_ = backend.allocate(values * sizeof(float));
    target_staging_.resize(values);
  }
  if (class_weights_.empty()) return;
  size_t bytes = class_weights_.size() * sizeof(float);
  device_weights_ = backend.allocate(bytes);
  backend.upload(device_weights_.get(), class_weights_.data(), bytes);
}

void ClassificationTask::upload_targets(Backend& backend, const PackedBatch& batch) {
  FINETUNE_CHECK(batch.sequences() <= max_sequences_);
  size_t count = batch.indices.size();
  size_t outputs = size_t(data_.outputs());
  if (data_.problem == ProblemType::single_label) {
    for (size_t b = 0; b < count; ++b) label_staging_[b] = data_.train.labels[batch.indices[b]];
    backend.upload(targets_.get(), label_staging_.data(), count * sizeof(int32_t));
    return;
  }
  std::fill_n(target_staging_.begin(), count * outputs, 0.0f);
  for (size_t b = 0; b < count; ++b) {
    if (data_.problem == ProblemType::regression) {
      target_staging_[b] = float(data_.train.targets[batch.indices[b]]);
    } else {
      for (int32_t id : data_.train.label_sets[batch.indices[b]]) {
        target_staging_[b * outputs + size_t(id)] = 1.0f;
      }
    }
  }
  backend.upload(targets_.get(), target_staging_.data(), count * outputs * sizeof(float));
}

void ClassificationTask::loss(Backend& backend, const PackedBatch& batch, const DeviceBatch&,
                              Tensor logits, float scale, Tensor losses, Tensor dlogits) {
  upload_targets(backend, batch);
  int64_t rows = batch.sequences();
  auto* floats = static_cast<float*>(targets_.get());
  switch (data_.problem) {
    case ProblemType::single_label: {
      Tensor weights;
      if (device_weights_) {
        weights = vector(static_cast<float*>(device_weights_.get()), data_.outputs());
      }
      backend.cross_entropy(logits, static_cast<const int32_t*>(targets_.get()), weights,
                            float(options_.label_smoothing), scale, losses, dlogits);
      break;
    }
    case ProblemType::multi_label:
      backend.binary_cross_entropy(logits, matrix(floats, rows, data_.outputs()), Tensor{}, scale,
                                   losses, dlogits);
      break;
    case ProblemType::regression:
      backend.squared_error(logits, vector(floats, rows), scale, losses, dlogits);
      break;
  }
}

std::unique_ptr<Evaluation> ClassificationTask::start_evaluation() {
  FINETUNE_CHECK(data_.has_eval);
  return std::make_unique<ClassificationEvaluation>(data_, class_weights_, options_.label_smoothing,
                                                    options_.multi_label_separator);
}

std::string ClassificationTask::best_metric() const {
  switch (data_.problem) {
    case ProblemType::single_label:
      return "eval_accuracy";
    case ProblemType::multi_label:
      return "eval_f1_micro";
    case ProblemType::regression:
      return "eval_mse";
  }
  return "";
}

bool ClassificationTask::larger_is_better(const std::string& metric) const {
  return metric != "eval_loss" && metric != "eval_mse" && metric != "eval_mae";
}

std::vector<std::string> ClassificationTask::metric_names() const {
  return classification_metric_names(data_.problem);
}

std::string ClassificationTask::config_json() const {
  return classification_config_json(options_, data_, class_weights_);
}

}  // namespace finetune
