// Collects classification logits in memory, and writes metrics and predictions.
#include "tasks/classification/evaluation/evaluation.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/files/files.h"
#include "core/text/text.h"

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
  ClassificationTally scores(data_, weights_, smoothing_);
  for (uint32_t sample : batch.indices) {
    FINETUNE_CHECK(sample < seen_.size() && !seen_[sample]);
    seen_[sample] = 1;
    switch (data_.problem) {
      case ProblemType::single_label:
        top_[sample] = top_label(logits, outputs);
        losses_[sample] = scores.label_loss(logits, data_.eval.labels[sample]);
        break;
      case ProblemType::multi_label:
        positive_[sample] = positive_labels(logits, outputs);
        losses_[sample] = scores.set_loss(logits, data_.eval.label_sets[int64_t(sample)]);
        break;
      case ProblemType::regression:
        values_[sample] = logits[0];
        losses_[sample] = scores.value_loss(logits[0], data_.eval.targets[sample]);
        break;
    }
    logits += outputs;
  }
}

ClassificationTally ClassificationEvaluation::tally() const {
  FINETUNE_CHECK(std::find(seen_.begin(), seen_.end(), 0) == seen_.end());
  ClassificationTally tally(data_, weights_, smoothing_);
  for (size_t i = 0; i < seen_.size(); ++i) {
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
  return tally().metrics();
}

void ClassificationEvaluation::write_files(const std::filesystem::path& directory) {
  write_predictions(directory / "predictions.csv");
  tally().write_files(directory);
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

}  // namespace finetune
