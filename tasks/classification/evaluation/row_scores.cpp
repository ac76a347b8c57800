// Hands each row to the tallies that it counts in.
#include "tasks/classification/evaluation/row_scores.h"

#include <utility>

#include "core/error.h"
#include "tasks/repeated_texts.h"

namespace finetune {

std::vector<std::string> classification_metric_names(ProblemType problem,
                                                     const ClassificationOptions& options) {
  if (problem == ProblemType::regression) {
    return {"eval_loss", "eval_mse", "eval_mae", "eval_r2", "eval_pearson", "eval_spearman"};
  }
  std::vector<std::string> names = {"eval_loss", "eval_accuracy", "eval_f1_macro", "eval_f1_micro",
                                    "eval_f1_weighted"};
  if (problem == ProblemType::single_label) names.emplace_back("eval_mcc");
  for (std::string& name : ProbabilityScores::metric_names(problem, options))
    names.push_back(std::move(name));
  return names;
}

RowScores::RowScores(const Setting& setting) : setting_(setting), all_(new_tally()) {
  const ClassificationData& data = setting.data;
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

Metrics RowScores::metrics() const {
  Metrics metrics = all_.metrics();
  if (answers_) answers_->add_metrics(metrics);
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
