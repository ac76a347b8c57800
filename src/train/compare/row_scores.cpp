// Reads saved predictions and scores samples of them.
#include "train/compare/row_scores.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "core/sha256.h"
#include "core/text/text.h"
#include "data/rows/records.h"
#include "data/squad.h"
#include "tasks/classification/evaluation/metrics.h"
#include "tasks/classification/rows/dataset.h"
#include "tasks/classification/rows/row_labels.h"
#include "tasks/qa/evaluation/prediction_files.h"

namespace finetune {
namespace {

// Mean of a value that each row has.
class MeanScores final : public RowScores {
 public:
  MeanScores(std::vector<double> values, std::string sha256)
      : RowScores(int64_t(values.size()), std::move(sha256)), values_(std::move(values)) {}

  double metric(std::span<const uint32_t> counts) const override {
    double sum = 0, rows = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      sum += counts[i] * values_[i];
      rows += counts[i];
    }
    return sum / rows;
  }

 private:
  std::vector<double> values_;
};

// Correlation of two values that each row has.
class PearsonScores final : public RowScores {
 public:
  PearsonScores(std::vector<double> truth, std::vector<double> predicted, std::string sha256)
      : RowScores(int64_t(truth.size()), std::move(sha256)),
        truth_(std::move(truth)),
        predicted_(std::move(predicted)) {}

  double metric(std::span<const uint32_t> counts) const override {
    double n = 0, x = 0, y = 0;
    for (size_t i = 0; i < truth_.size(); ++i) {
      n += counts[i];
      x += counts[i] * truth_[i];
      y += counts[i] * predicted_[i];
    }
    double xx = 0, yy = 0, xy = 0;
    for (size_t i = 0; i < truth_.size(); ++i) {
      const double dx = truth_[i] - x / n, dy = predicted_[i] - y / n;
      xx += counts[i] * dx * dx;
      yy += counts[i] * dy * dy;
      xy += counts[i] * dx * dy;
    }
    return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
  }

 private:
  std::vector<double> truth_, predicted_;
};

// Of labels: counts for each class, from which the metric follows.
class LabelScores final : public RowScores {
 public:
  using Score = std::function<double(std::vector<ClassScores> counts, int64_t whole, int64_t rows)>;

  LabelScores(LabelSets truth, LabelSets predicted, int64_t classes, Score score,
              std::string sha256)
      : RowScores(truth.size(), std::move(sha256)),
        truth_(std::move(truth)),
        predicted_(std::move(predicted)),
        classes_(classes),
        score_(std::move(score)) {
    for (int64_t i = 0; i < truth_.size(); ++i) {
      std::vector<int32_t> common;
      std::set_intersection(truth_[i].begin(), truth_[i].end(), predicted_[i].begin(),
                            predicted_[i].end(), std::back_inserter(common));
      correct_.push_back(common);
    }
  }

  double metric(std::span<const uint32_t> counts) const override {
    std::vector<ClassScores> scores(static_cast<size_t>(classes_));
    int64_t whole = 0, rows = 0;
    for (int64_t i = 0; i < truth_.size(); ++i) {
      const int64_t count = counts[size_t(i)];
      if (count == 0) continue;
      for (int32_t id : truth_[i]) scores[size_t(id)].support += count;
      for (int32_t id : predicted_[i]) scores[size_t(id)].predicted += count;
      for (int32_t id : correct_[i]) scores[size_t(id)].correct += count;
      rows += count;
      const bool right =
          truth_[i].size() == correct_[i].size() && predicted_[i].size() == correct_[i].size();
      if (right) whole += count;
    }
    return score_(std::move(scores), whole, rows);
  }

 private:
  LabelSets truth_, predicted_, correct_;
  int64_t classes_;
  Score score_;
};

// Labels by name, numbered as they come.
class ClassNumbers {
 public:
  int32_t operator()(std::string_view name) {
    return ids_.emplace(name, int32_t(ids_.size())).first->second;
  }
  int64_t size() const { return int64_t(ids_.size()); }

 private:
  std::unordered_map<std::string, int32_t> ids_;
};

template <typename Scores>
std::optional<double> named_score(const Scores& scores, std::string_view metric) {
  if (metric == "eval_accuracy") return scores.accuracy;
  if (metric == "eval_f1_macro") return scores.f1.macro;
  if (metric == "eval_f1_micro") return scores.f1.micro;
  if (metric == "eval_f1_weighted") return scores.f1.weighted;
  return std::nullopt;
}

std::optional<double> single_label_score(std::vector<ClassScores> counts, std::string_view metric) {
  const SingleLabelScores scores = single_label_scores(std::move(counts));
  return metric == "eval_mcc" ? scores.mcc : named_score(scores, metric);
}

std::optional<double> multi_label_score(std::vector<ClassScores> counts, int64_t whole,
                                        int64_t rows, std::string_view metric) {
  return named_score(multi_label_scores(std::move(counts), whole, rows), metric);
}

// All labels that the model has, in case that some never occur.
void number_all_classes(const RunRecord& run, ClassNumbers& number) {
  const Table table = read_table({run.directory / "per_class.csv"}, {.delimiter = ','});
  for (const Table::Row& row : table.rows()) number(row.values[0]);
}

std::unique_ptr<RowScores> label_scores(const RunRecord& run, const Table& table, size_t label,
                                        const std::string& metric, const std::string& sha256) {
  const std::string& separator = run.option("multi-label");
  const bool single = separator.empty();
  const bool known = single ? single_label_score({}, metric).has_value()
                            : multi_label_score({}, 0, 0, metric).has_value();
  if (!known) return nullptr;
  ClassNumbers number;
  if (!single) number_all_classes(run, number);
  auto set_of = [&](std::string_view value) {
    std::vector<int32_t> ids;
    if (single) return std::vector{number(value)};
    for (std::string_view part : split_labels(value, separator)) ids.push_back(number(part));
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
  };
  const size_t predicted_column = table.columns().size() - 2;  // and its probability
  LabelSets truth, predicted;
  for (const Table::Row& row : table.rows()) {
    truth.push_back(set_of(row.values[label]));
    predicted.push_back(set_of(row.values[predicted_column]));
  }
  auto score = [metric, single](std::vector<ClassScores> counts, int64_t whole, int64_t rows) {
    return single ? *single_label_score(std::move(counts), metric)
                  : *multi_label_score(std::move(counts), whole, rows, metric);
  };
  return std::make_unique<LabelScores>(std::move(truth), std::move(predicted), number.size(), score,
                                       sha256);
}

std::unique_ptr<RowScores> value_scores(const Table& table, size_t label, const std::string& metric,
                                        const std::string& sha256) {
  std::vector<double> truth, predicted, errors;
  for (const Table::Row& row : table.rows()) {
    truth.push_back(finite_number(row.values[label]).value());
    predicted.push_back(float(finite_number(row.values.back()).value()));  // as it was computed
    const double error = predicted.back() - truth.back();
    errors.push_back(metric == "eval_mse" ? error * error : std::abs(error));
  }
  if (metric == "eval_mse" || metric == "eval_mae") {
    return std::make_unique<MeanScores>(std::move(errors), sha256);
  }
  if (metric != "eval_pearson") return nullptr;
  return std::make_unique<PearsonScores>(std::move(truth), std::move(predicted), sha256);
}

// The columns of the data, without what the run has added.
std::string sum_of_rows(const Table& table, size_t added) {
  Sha256 sum;
  for (const Table::Row& row : table.rows()) {
    for (std::string_view value : row.values.first(row.values.size() - added)) {
      const uint64_t size = value.size();
      sum.update(&size, sizeof size);
      sum.update(value.data(), value.size());
    }
  }
  return sum.hex();
}

std::unique_ptr<RowScores> row_scores(const RunRecord& run, const std::string& metric) {
  const Table table = read_table({run.directory / "predictions.csv"}, {.delimiter = ','});
  const bool regression = run.option("regression") == "true";
  const size_t added = regression ? 1 : 2;
  if (table.columns().size() < added + 2) throw data_error("predictions.csv has too few columns");
  const size_t label = table.column(run.option("label-column"));
  const std::string sha256 = sum_of_rows(table, added);
  auto scores = regression ? value_scores(table, label, metric, sha256)
                           : label_scores(run, table, label, metric, sha256);
  table.check_intact();
  return scores;
}

std::unique_ptr<RowScores> question_scores(const RunRecord& run, const std::string& metric) {
  if (metric != "eval_f1" && metric != "eval_exact_match") return nullptr;
  if (run.eval_files.empty()) throw data_error("the run does not say what it was evaluated on");
  const std::vector<InputFile> files(run.eval_files.begin(), run.eval_files.end());
  const int64_t limit = parse_int(run.option("max-eval-samples")).value_or(0);
  const SquadData data = read_squad(files, limit, true);
  const PredictionFile predictions = read_predictions(run.directory / "predictions.json", data);
  const std::string& version = run.option("squad-version");
  const int rules = version == "2" || (version == "auto" && data.has_unanswerable) ? 2 : 1;
  std::vector<double> values;
  Sha256 sum;
  for (size_t q = 0; q < data.questions.size(); ++q) {
    const SquadQuestion& question = data.questions[q];
    sum.update(question.id.c_str(), question.id.size() + 1);
    const std::string* answer = predictions.answers[q];
    const AnswerScore score =
        answer ? score_answer(question.answers, *answer, rules) : AnswerScore{};
    values.push_back(100 * (metric == "eval_f1" ? score.f1 : score.exact));
  }
  return std::make_unique<MeanScores>(std::move(values), sum.hex());
}

}  // namespace

std::variant<std::unique_ptr<RowScores>, std::string> read_row_scores(const RunRecord& run,
                                                                      const std::string& metric) {
  const auto value = run.metrics.find(metric);
  if (value == run.metrics.end()) return concat("a run has no ", metric);
  std::unique_ptr<RowScores> scores;
  try {
    scores = run.option("task") == "qa" ? question_scores(run, metric) : row_scores(run, metric);
  } catch (const std::exception& error) {
    return concat(run.directory.string(), ": its predictions cannot be scored: ", error.what());
  }
  if (!scores) return concat(metric, " is not a metric of single rows' predictions");
  const std::vector<uint32_t> once(size_t(scores->rows()), 1);
  const double found = scores->metric(once);
  if (std::abs(found - value->second) <= 1e-6 * std::max(1.0, std::abs(value->second))) {
    return scores;
  }
  return concat(run.directory.string(), ": its predictions give ", metric, " ",
                format_number(found), ", its metrics.json says ", format_number(value->second));
}

}  // namespace finetune
