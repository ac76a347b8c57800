// Collects classification logits in memory, and writes metrics and predictions.
#include "tasks/classification/evaluation/evaluation.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/files/files.h"
#include "core/text/text.h"
#include "tasks/classification/mix/ngram_mix.h"
#include "tasks/finite_outputs.h"
#include "tasks/repeated_texts.h"

namespace finetune {

namespace {

constexpr int64_t kMostFittedLogits = int64_t{1} << 22;

}  // namespace

std::vector<std::string> classification_metric_names(ProblemType problem,
                                                     const TaskOptions& options) {
  if (problem == ProblemType::regression) {
    return {"eval_loss", "eval_mse", "eval_mae", "eval_pearson", "eval_spearman"};
  }
  std::vector<std::string> names = {"eval_loss", "eval_accuracy", "eval_f1_macro", "eval_f1_micro",
                                    "eval_f1_weighted"};
  if (problem == ProblemType::single_label) names.emplace_back("eval_mcc");
  for (std::string& name : AnswerScores::metric_names(options)) names.push_back(std::move(name));
  return names;
}

ClassificationEvaluation::ClassificationEvaluation(const ClassificationData& data,
                                                   std::span<const float> weights, double smoothing,
                                                   std::string separator, Keeps keeps)
    : data_(data),
      weights_(weights),
      smoothing_(smoothing),
      separator_(std::move(separator)),
      losses_of_(data, weights, smoothing) {
  size_t count = size_t(data.eval.set.examples);
  seen_.resize(count);
  losses_.resize(count);
  if (data.problem == ProblemType::single_label) top_.resize(count);
  if (data.problem == ProblemType::multi_label) positive_.resize(count);
  if (data.problem == ProblemType::regression) {
    values_.resize(count);
    return;
  }
  answers_.emplace(data.problem, data.outputs(), TaskOptions());
  if (keeps == Keeps::nothing) return;
  const int64_t values = int64_t(count) * data.outputs();
  fitted_stride_ = std::max<int64_t>(1, (values + kMostFittedLogits - 1) / kMostFittedLogits);
  keeps_all_ =
      keeps == Keeps::all && data.problem == ProblemType::single_label && values <= kMostLogits;
  stride_ = keeps_all_ ? 1 : fitted_stride_;
  const int64_t kept = RowStride{0, stride_}.count(int64_t(count));
  logits_.resize(size_t(kept * data.outputs()));
}

void ClassificationEvaluation::keep(uint32_t sample, const float* logits) {
  if (stride_ == 0 || sample % stride_ != 0) return;
  const int64_t outputs = data_.outputs();
  std::copy_n(logits, outputs, logits_.begin() + int64_t(sample) / stride_ * outputs);
}

HeldOutLogits ClassificationEvaluation::held_out(std::span<const float> margins,
                                                 bool of_known_labels) const {
  HeldOutLogits held;
  held.outputs = data_.outputs();
  held.several_labels = data_.problem == ProblemType::multi_label;
  if (fitted_stride_ == 0) return held;
  const auto append = [&](std::span<const float> from, int64_t row, std::vector<float>& to) {
    const auto values = from.subspan(size_t(row * held.outputs), size_t(held.outputs));
    to.insert(to.end(), values.begin(), values.end());
  };
  for (int64_t sample = 0; sample < int64_t(seen_.size()); sample += fitted_stride_) {
    if (held.several_labels) {
      if (!of_known_labels) break;
      const auto truth = data_.eval.label_sets[sample];
      const auto known = std::lower_bound(truth.begin(), truth.end(), int32_t(held.outputs));
      held.sets.push_back(truth.first(size_t(known - truth.begin())));
    } else {
      const int32_t label = data_.eval.labels[size_t(sample)];
      if ((label < held.outputs) != of_known_labels) continue;
      held.labels.push_back(label);
    }
    append(logits_, sample / stride_, held.logits);
    if (!margins.empty()) append(margins, sample, held.margins);
  }
  return held;
}

void ClassificationEvaluation::add(const PackedBatch& batch, const float* logits) {
  for (uint32_t sample : batch.indices) {
    FINETUNE_CHECK(sample < seen_.size() && !seen_[sample]);
    seen_[sample] = 1;
    place(sample, logits);
    keep(sample, logits);
    logits += data_.outputs();
  }
}

void ClassificationEvaluation::place(uint32_t sample, const float* logits) {
  const int64_t outputs = data_.outputs();
  if (!all_finite({logits, size_t(outputs)})) throw not_finite(concat("row ", sample + 1));
  const ClassificationSide& eval = data_.eval;
  switch (data_.problem) {
    case ProblemType::single_label:
      top_[sample] = top_label(logits, outputs);
      losses_[sample] = losses_of_.label_loss(logits, eval.labels[sample]);
      answers_->add_label(logits, eval.labels[sample], top_[sample]);
      break;
    case ProblemType::multi_label:
      positive_[sample] = positive_labels(logits, outputs);
      losses_[sample] = losses_of_.set_loss(logits, eval.label_sets[int64_t(sample)]);
      answers_->add_set(logits, eval.label_sets[int64_t(sample)]);
      break;
    case ProblemType::regression:
      values_[sample] = float(data_.target_scale.number(double(logits[0])));
      losses_[sample] = losses_of_.value_loss(values_[sample], eval.targets[sample]);
      break;
  }
}

void ClassificationEvaluation::mix(const MixWeights& weights, std::span<const float> margins) {
  FINETUNE_CHECK(can_mix());
  const auto outputs = size_t(data_.outputs());
  mix_logits(weights, margins, logits_);
  answers_.emplace(data_.problem, data_.outputs(), TaskOptions());
  for (size_t i = 0; i < seen_.size(); ++i) place(uint32_t(i), logits_.data() + i * outputs);
  logits_ = {};
  keeps_all_ = false;
}

ClassificationTally ClassificationEvaluation::tally(bool unseen_alone) const {
  FINETUNE_CHECK(std::find(seen_.begin(), seen_.end(), 0) == seen_.end());
  ClassificationTally tally(data_, weights_, smoothing_);
  for (size_t i = 0; i < seen_.size(); ++i) {
    if (unseen_alone && data_.eval.repeated[i]) continue;
    switch (data_.problem) {
      case ProblemType::single_label:
        tally.add_label(data_.eval.labels[i], top_[i].id, losses_[i]);
        break;
      case ProblemType::multi_label:
        tally.add_set(data_.eval.label_sets[int64_t(i)], ids_of(positive_[i]), losses_[i]);
        break;
      case ProblemType::regression:
        tally.add_value(data_.eval.targets[i], values_[i], losses_[i]);
        break;
    }
  }
  return tally;
}

Metrics ClassificationEvaluation::metrics() {
  Metrics metrics = tally().metrics();
  if (answers_) answers_->add_metrics(metrics);
  const std::vector<uint8_t>& repeated = data_.eval.repeated;
  if (repeated.empty()) return metrics;
  const auto count = int64_t(std::count(repeated.begin(), repeated.end(), 1));
  const bool any_unseen = count < int64_t(repeated.size());
  add_unseen(any_unseen ? tally(true).metrics() : Metrics(), count, metrics);
  return metrics;
}

void ClassificationEvaluation::write_files(const std::filesystem::path& directory) {
  write_predictions(directory / "predictions.csv");
  tally().write_files(directory);
}

void ClassificationEvaluation::write_predictions(const std::filesystem::path& path) const {
  PredictionFormat format;
  format.problem = data_.problem;
  format.labels = data_.labels.names();
  format.separator = separator_;
  const Table& table = *data_.eval.table;
  std::vector<std::string> columns = table.columns();
  for (std::string& name : prediction_columns(format, table.columns())) {
    columns.push_back(std::move(name));
  }
  AtomicFile file(path);
  std::string line;
  append_csv_row(columns, line);
  for (size_t i = 0; i < data_.eval.rows.size(); ++i) {
    append_csv_row(table.rows()[data_.eval.rows[i]].values, line);
    line.pop_back();
    switch (data_.problem) {
      case ProblemType::single_label:
        append_labels(format, {&top_[i], 1}, line);
        break;
      case ProblemType::multi_label:
        append_labels(format, positive_[i], line);
        break;
      case ProblemType::regression:
        append_prediction(format, &values_[i], line);
        break;
    }
    line += '\n';
    file.write(line);
    line.clear();
  }
  file.commit();
}

}  // namespace finetune
