#include "tasks/classification/evaluation.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "tasks/classification/losses.h"

namespace finetune {

std::vector<std::string> classification_metric_names(ProblemType problem) {
  switch (problem) {
    case ProblemType::single_label:
      return {"eval_loss",     "eval_accuracy",    "eval_f1_macro",
              "eval_f1_micro", "eval_f1_weighted", "eval_mcc"};
    case ProblemType::multi_label:
      return {"eval_loss", "eval_accuracy", "eval_f1_macro", "eval_f1_micro", "eval_f1_weighted"};
    case ProblemType::regression:
      return {"eval_loss", "eval_mse", "eval_mae", "eval_pearson", "eval_spearman"};
  }
  return {};
}

ClassificationEvaluation::ClassificationEvaluation(const ClassificationData& data,
                                                   std::span<const float> weights, double smoothing,
                                                   std::string separator)
    : data_(data), weights_(weights), smoothing_(smoothing), separator_(std::move(separator)) {
  size_t count = size_t(data.eval.set.samples.size());
  seen_.resize(count);
  losses_.resize(count);
  if (data.problem == ProblemType::single_label) top_.resize(count);
  if (data.problem == ProblemType::multi_label) positive_.resize(count);
  if (data.problem == ProblemType::regression) values_.resize(count);
}

void ClassificationEvaluation::add(const PackedBatch& batch, const float* logits) {
  int64_t outputs = data_.outputs();
  for (uint32_t sample : batch.indices) {
    FINETUNE_CHECK(sample < seen_.size() && !seen_[sample]);
    seen_[sample] = 1;
    std::span<const float> row(logits, size_t(outputs));
    switch (data_.problem) {
      case ProblemType::single_label: {
        int32_t label = data_.eval.labels[sample];
        top_[sample] = top_label(logits, outputs);
        if (label < outputs) {
          losses_[sample] = cross_entropy_loss(row, label, weights_, smoothing_);
        }
        break;
      }
      case ProblemType::multi_label: {
        std::span<const int32_t> truth = data_.eval.label_sets[sample];
        auto known = std::lower_bound(truth.begin(), truth.end(), int32_t(outputs));
        positive_[sample] = positive_labels(logits, outputs);
        losses_[sample] =
            binary_cross_entropy_loss(row, truth.first(size_t(known - truth.begin())));
        break;
      }
      case ProblemType::regression: {
        values_[sample] = logits[0];
        double error = double(logits[0]) - data_.eval.targets[sample];
        losses_[sample] = error * error;
        break;
      }
    }
    logits += outputs;
  }
}

void ClassificationEvaluation::check_complete() const {
  FINETUNE_CHECK(std::find(seen_.begin(), seen_.end(), 0) == seen_.end());
}

double ClassificationEvaluation::mean_loss() const {
  double sum = 0, denominator = 0;
  for (size_t i = 0; i < losses_.size(); ++i) {
    double weight = 1;
    if (data_.problem == ProblemType::single_label) {
      int32_t label = data_.eval.labels[i];
      if (label >= data_.outputs()) continue;
      if (!weights_.empty()) weight = double(weights_[size_t(label)]);
    }
    sum += losses_[i];
    denominator += weight;
  }
  return denominator == 0 ? 0 : sum / denominator;
}

std::vector<int32_t> ClassificationEvaluation::predicted_ids() const {
  std::vector<int32_t> ids;
  ids.reserve(top_.size());
  for (const ScoredLabel& label : top_) ids.push_back(label.id);
  return ids;
}

LabelSets ClassificationEvaluation::predicted_sets() const {
  LabelSets sets;
  std::vector<int32_t> ids;
  for (const std::vector<ScoredLabel>& labels : positive_) {
    ids.clear();
    for (const ScoredLabel& label : labels) ids.push_back(label.id);
    sets.push_back(ids);
  }
  return sets;
}

Metrics ClassificationEvaluation::metrics() {
  check_complete();
  Metrics metrics{{"eval_loss", mean_loss()}};
  auto add_f1 = [&](const F1Scores& f1) {
    metrics["eval_f1_macro"] = f1.macro;
    metrics["eval_f1_micro"] = f1.micro;
    metrics["eval_f1_weighted"] = f1.weighted;
  };
  if (data_.problem == ProblemType::single_label) {
    auto scores = single_label_scores(data_.eval.labels, predicted_ids(), data_.classes());
    metrics["eval_accuracy"] = scores.accuracy;
    metrics["eval_mcc"] = scores.mcc;
    add_f1(scores.f1);
  } else if (data_.problem == ProblemType::multi_label) {
    auto scores = multi_label_scores(data_.eval.label_sets, predicted_sets(), data_.classes());
    metrics["eval_accuracy"] = scores.accuracy;
    add_f1(scores.f1);
  } else {
    std::vector<double> values(values_.begin(), values_.end());
    auto scores = regression_scores(data_.eval.targets, values);
    metrics["eval_mse"] = scores.mse;
    metrics["eval_mae"] = scores.mae;
    metrics["eval_pearson"] = scores.pearson;
    metrics["eval_spearman"] = scores.spearman;
  }
  return metrics;
}

void ClassificationEvaluation::write_files(const std::filesystem::path& directory) {
  check_complete();
  write_predictions(directory / "predictions.csv");
  if (data_.problem == ProblemType::regression) return;
  write_confusion(directory / "confusion.csv");
  write_per_class(directory / "per_class.csv");
}

void ClassificationEvaluation::write_predictions(const std::filesystem::path& path) const {
  PredictionFormat format{data_.problem, data_.labels.names(), separator_};
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

std::vector<ClassScores> ClassificationEvaluation::class_scores() const {
  return data_.problem == ProblemType::single_label
             ? single_label_scores(data_.eval.labels, predicted_ids(), data_.classes()).classes
             : multi_label_scores(data_.eval.label_sets, predicted_sets(), data_.classes()).classes;
}

void ClassificationEvaluation::write_confusion(const std::filesystem::path& path) const {
  AtomicFile file(path);
  std::string out;
  int64_t classes = data_.classes();
  std::vector<std::string> row;
  if (data_.problem == ProblemType::single_label) {
    std::vector<int64_t> counts = confusion_matrix(data_.eval.labels, predicted_ids(), classes);
    row = {"true_label"};
    for (int64_t c = 0; c < classes; ++c) row.push_back(data_.class_name(c));
    append_csv_row(row, out);
    for (int64_t t = 0; t < classes; ++t) {
      row = {data_.class_name(t)};
      for (int64_t c = 0; c < classes; ++c) row.push_back(concat(counts[size_t(t * classes + c)]));
      append_csv_row(row, out);
      file.write(out);
      out.clear();
    }
  } else {
    row = {"label", "true_positives", "false_positives", "false_negatives", "true_negatives"};
    append_csv_row(row, out);
    std::vector<ClassScores> scores = class_scores();
    int64_t samples = data_.eval.label_sets.size();
    for (int64_t c = 0; c < classes; ++c) {
      const ClassScores& s = scores[size_t(c)];
      row = {data_.class_name(c), concat(s.correct), concat(s.predicted - s.correct),
             concat(s.support - s.correct), concat(samples - s.predicted - s.support + s.correct)};
      append_csv_row(row, out);
    }
    file.write(out);
  }
  file.commit();
}

void ClassificationEvaluation::write_per_class(const std::filesystem::path& path) const {
  std::string out;
  append_csv_row(std::vector<std::string>{"label", "precision", "recall", "f1", "support"}, out);
  std::vector<ClassScores> scores = class_scores();
  for (int64_t c = 0; c < data_.classes(); ++c) {
    const ClassScores& s = scores[size_t(c)];
    append_csv_row(
        std::vector<std::string>{data_.class_name(c), format_number(s.precision),
                                 format_number(s.recall), format_number(s.f1), concat(s.support)},
        out);
  }
  write_file(path, out);
}

}  // namespace finetune
