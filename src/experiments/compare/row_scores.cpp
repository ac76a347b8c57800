// Reads saved predictions and scores samples of them.
#include "experiments/compare/row_scores.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "core/error.h"
#include "core/sha256.h"
#include "core/text/text.h"
#include "experiments/compare/saved_predictions.h"
#include "tasks/scores/label_scores.h"

namespace finetune {
namespace {

// The mean of one value per row.
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

// The Pearson correlation of two values per row.
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

// The coefficient of determination of two values per row.
class R2Scores final : public RowScores {
 public:
  R2Scores(std::vector<double> truth, std::vector<double> predicted, std::string sha256)
      : RowScores(int64_t(truth.size()), std::move(sha256)),
        truth_(std::move(truth)),
        predicted_(std::move(predicted)) {}

  double metric(std::span<const uint32_t> counts) const override {
    double n = 0, sum = 0, errors = 0, squares = 0;
    for (size_t i = 0; i < truth_.size(); ++i) {
      n += counts[i];
      sum += counts[i] * truth_[i];
    }
    for (size_t i = 0; i < truth_.size(); ++i) {
      const double error = predicted_[i] - truth_[i], difference = truth_[i] - sum / n;
      errors += counts[i] * error * error;
      squares += counts[i] * difference * difference;
    }
    if (squares > 0) return 1 - errors / squares;
    return errors > 0 ? 0 : 1;
  }

 private:
  std::vector<double> truth_, predicted_;
};

// Metrics of labels, which follow from counts for each class.
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

// Returns the sha256 of the data's columns, without the columns that the run added.
std::string sum_of_rows(const SavedRows& saved) {
  Sha256 sum;
  for (const Table::Row& row : saved.table.rows()) {
    for (std::string_view value : row.values.first(row.values.size() - saved.added)) {
      const uint64_t size = value.size();
      sum.update(&size, sizeof size);
      sum.update(value.data(), value.size());
    }
  }
  saved.table.check_intact();
  return sum.hex();
}

std::unique_ptr<RowScores> label_scores(const RunRecord& run, const std::string& metric) {
  const bool single = run.option("multi-label").empty();
  const bool known = single ? single_label_score({}, metric).has_value()
                            : multi_label_score({}, 0, 0, metric).has_value();
  if (!known) return nullptr;
  SavedLabels saved = read_saved_labels(run);
  std::string sha256 = sum_of_rows(saved);
  auto score = [metric, single](std::vector<ClassScores> counts, int64_t whole, int64_t rows) {
    return single ? *single_label_score(std::move(counts), metric)
                  : *multi_label_score(std::move(counts), whole, rows, metric);
  };
  return std::make_unique<LabelScores>(std::move(saved.truth), std::move(saved.predicted),
                                       int64_t(saved.names.size()), score, std::move(sha256));
}

std::unique_ptr<RowScores> value_scores(const RunRecord& run, const std::string& metric) {
  SavedValues saved = read_saved_values(run);
  std::string sha256 = sum_of_rows(saved);
  if (metric == "eval_pearson") {
    return std::make_unique<PearsonScores>(std::move(saved.truth), std::move(saved.predicted),
                                           std::move(sha256));
  }
  if (metric == "eval_r2") {
    return std::make_unique<R2Scores>(std::move(saved.truth), std::move(saved.predicted),
                                      std::move(sha256));
  }
  if (metric != "eval_mse" && metric != "eval_mae") return nullptr;
  std::vector<double> errors;
  for (size_t i = 0; i < saved.truth.size(); ++i) {
    const double error = saved.predicted[i] - saved.truth[i];
    errors.push_back(metric == "eval_mse" ? error * error : std::abs(error));
  }
  return std::make_unique<MeanScores>(std::move(errors), std::move(sha256));
}

std::unique_ptr<RowScores> question_scores(const RunRecord& run, const std::string& metric) {
  if (metric != "eval_f1" && metric != "eval_exact_match") return nullptr;
  const SavedAnswers saved = read_saved_answers(run);
  std::vector<double> values;
  Sha256 sum;
  for (size_t q = 0; q < saved.scores.size(); ++q) {
    const std::string& id = saved.data.questions[q].id;
    sum.update(id.c_str(), id.size() + 1);
    values.push_back(100 * (metric == "eval_f1" ? saved.scores[q].f1 : saved.scores[q].exact));
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
    const bool regression = run.option("regression") == "true";
    scores = run.option("task") == "qa" ? question_scores(run, metric)
             : regression               ? value_scores(run, metric)
                                        : label_scores(run, metric);
  } catch (const Error& error) {
    if (error.code() != ExitCode::data) throw;
    return concat(run.directory.string(), ": its predictions cannot be scored: ", error.what());
  }
  if (!scores) return concat(metric, " is not a metric of single rows' predictions");
  const std::vector<uint32_t> once(size_t(scores->rows()), 1);
  const std::string mismatch = metric_mismatch(run, metric, scores->metric(once));
  if (!mismatch.empty()) return mismatch;
  return scores;
}

}  // namespace finetune
