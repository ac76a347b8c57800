// Adds each row to the counts that it belongs to.
#include "tasks/classification/evaluation/row_scores.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "tasks/repeated_texts.h"

namespace finetune {

std::vector<std::string> classification_metric_names(ProblemType problem,
                                                     const ClassificationOptions& options) {
  std::vector<std::string> names;
  if (options.folds > 0) {
    names.emplace_back("eval_folds");
    for (const char* name : kFoldMeasures) {
      const bool is_number = std::string_view(name) == "eval_mse";
      if (is_number == (problem == ProblemType::regression)) names.push_back(concat(name, "_sd"));
    }
  }
  const auto add = [&](std::initializer_list<const char*> more) {
    names.insert(names.end(), more.begin(), more.end());
  };
  if (problem == ProblemType::regression) {
    add({"eval_loss", "eval_mse", "eval_mae", "eval_r2", "eval_pearson", "eval_spearman"});
    return names;
  }
  add({"eval_loss", "eval_accuracy", "eval_f1_macro", "eval_f1_micro", "eval_f1_weighted"});
  if (problem == ProblemType::single_label) names.emplace_back("eval_mcc");
  for (std::string& name : ProbabilityScores::metric_names(problem, options))
    names.push_back(std::move(name));
  return names;
}

RowScores::RowScores(const Setting& setting) : setting_(setting), all_(new_tally()) {
  const ClassificationData& data = setting.data;
  const std::vector<uint8_t>& folds = data.eval.folds;
  if (!folds.empty()) {
    fold_rows_.resize(size_t(*std::max_element(folds.begin(), folds.end())) + 1);
    for (size_t fold = 0; fold < fold_rows_.size(); ++fold) folds_.push_back(new_tally());
  }
  if (data.problem == ProblemType::regression) return;
  answers_.emplace(data.problem, data.outputs(), setting.options);
}

ClassCounts RowScores::new_tally() const {
  return {setting_.data, setting_.weights, setting_.options.label_smoothing};
}

void RowScores::tell_repeated() {
  unseen_.emplace(new_tally());
}

template <typename Count>
void RowScores::count(const WaitingRow& row, Count&& count_in) {
  count_in(all_);
  if (unseen_ && !row.repeated) count_in(*unseen_);
  if (row.fold < 0) return;
  count_in(folds_[size_t(row.fold)]);
  ++fold_rows_[size_t(row.fold)];
}

void RowScores::add(const WaitingRow& row, const float* answer, const float* unmixed) {
  const int64_t outputs = setting_.data.outputs();
  const LogitCalibration& calibration = setting_.options.calibration;
  ++rows_;
  repeated_ += row.repeated;
  switch (setting_.data.problem) {
    case ProblemType::single_label: {
      if (unmixed) {
        if (!unmixed_) unmixed_.emplace(new_tally());
        unmixed_->add_label(row.label, top_label(unmixed, outputs).id, 0);
      }
      const ScoredLabel top = top_label(answer, outputs, calibration.temperature);
      count(row, [&, loss = all_.label_loss(answer, row.label)](ClassCounts& tally) {
        tally.add_label(row.label, top.id, loss);
      });
      answers_->add_label(answer, row.label, top, row.freshness);
      if (setting_.slices) setting_.slices->add_label(row.slices, row.label, top.id);
      break;
    }
    case ProblemType::multi_label: {
      const std::vector<int32_t> ids = ids_of(positive_labels(answer, outputs, calibration));
      count(row, [&, loss = all_.set_loss(answer, row.labels)](ClassCounts& tally) {
        tally.add_set(row.labels, ids, loss);
      });
      answers_->add_set(answer, row.labels);
      if (setting_.slices) setting_.slices->add_set(row.slices, row.labels, ids);
      break;
    }
    case ProblemType::regression:
      count(row, [&, loss = all_.value_loss(answer[0], row.target)](ClassCounts& tally) {
        tally.add_value(row.target, answer[0], loss);
      });
      if (setting_.slices) setting_.slices->add_value(row.slices, row.target, double(answer[0]));
      break;
  }
}

void RowScores::add_folds(Metrics& metrics) const {
  metrics["eval_folds"] = double(folds_.size());
  for (const char* name : kFoldMeasures) {
    if (!metrics.contains(name)) continue;
    double sum = 0, squares = 0;
    std::vector<double> values;
    for (size_t fold = 0; fold < folds_.size(); ++fold) {
      if (fold_rows_[fold] > 0) values.push_back(folds_[fold].metrics().at(name));
    }
    if (values.size() < 2) continue;
    for (double value : values) sum += value;
    const double mean = sum / double(values.size());
    for (double value : values) squares += (value - mean) * (value - mean);
    metrics[concat(name, "_sd")] = std::sqrt(squares / double(values.size() - 1));
  }
}

Metrics RowScores::metrics() const {
  Metrics metrics = all_.metrics();
  if (answers_) answers_->add_metrics(metrics);
  if (!folds_.empty()) add_folds(metrics);
  if (unseen_) add_unseen(repeated_ < rows_ ? unseen_->metrics() : Metrics(), repeated_, metrics);
  return metrics;
}

std::optional<Promise> RowScores::promise() const {
  return answers_ ? answers_->promise() : std::nullopt;
}

Metrics RowScores::unmixed() const {
  return unmixed_ ? unmixed_->metrics() : Metrics();
}

std::string RowScores::describe() const {
  return concat(answers_ ? answers_->describe() : "",
                setting_.slices ? setting_.slices->table() : "");
}

std::string RowScores::slices_json() const {
  return setting_.slices ? concat("\"slices\":", setting_.slices->json()) : "";
}

void RowScores::write_files(const std::filesystem::path& directory) const {
  all_.write_files(directory);
  if (setting_.slices) setting_.slices->write(directory / "slices.csv");
}

}  // namespace finetune
