// Adds rows to reliability and coverage, and describes the threshold that was found.
#include "tasks/classification/evaluation/probability_scores.h"

#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/shown_numbers.h"
#include "core/text/text.h"
#include "tasks/classification/calibration/held_out_logits.h"
#include "tasks/scores/promise_file.h"

namespace finetune {
namespace {

constexpr double kUsualTarget = 0.95;
constexpr const char* kPilot = "every tenth row only chose the order of thresholds";
constexpr const char* kCoverageMetric = "eval_coverage_at_95";

std::string as_percent(double share) {
  return format_fixed(100 * share, 1) + " %";
}

std::string rows_in_words(int64_t rows) {
  return concat(with_thousands(double(rows)), rows == 1 ? " row" : " rows");
}

// "; left out: 300 rows whose text the model's run read, 20 rows whose text an earlier row has".
std::string left_out(int64_t read_by_run, int64_t repeated) {
  if (read_by_run + repeated == 0) return "";
  std::string out = "; left out: ";
  if (read_by_run > 0) out += rows_in_words(read_by_run) + " whose text the model's run read";
  if (read_by_run > 0 && repeated > 0) out += ", ";
  if (repeated > 0) out += rows_in_words(repeated) + " whose text an earlier row has";
  return out;
}

std::string in_words(const Promise& promise, const std::string& left) {
  const std::string words = promise_in_words(promise);
  if (promise.threshold) {
    return concat("promise: ", words, "; ", kPilot, left, "; finetune predict --automatic uses it");
  }
  const std::string none = concat("no promise of ", words, ", can be made from these ",
                                  rows_in_words(promise.rows), " (", kPilot, ")", left);
  if (!promise.needed_rows) {
    return concat(none,
                  ": too many are wrong even where the model is surest; more rows would not help");
  }
  const bool some = promise.rows > 0;
  return concat(none, "; about ", with_thousands(double(*promise.needed_rows)), " rows ",
                some ? "like these, with different texts," : "that the run has not read",
                " are needed", some ? " (another try on these weakens the confidence)" : "");
}

}  // namespace

ProbabilityScores::ProbabilityScores(ProblemType problem, int64_t outputs,
                                     const ClassificationOptions& options)
    : several_labels_(problem == ProblemType::multi_label),
      outputs_(outputs),
      temperature_(options.calibration.temperature),
      min_probability_(options.min_probability),
      target_accuracy_(options.target_accuracy),
      own_(outputs, several_labels_) {
  if (temperature_ != 1) calibrated_.emplace(outputs, several_labels_);
  if (several_labels_) return;
  curve_.emplace();
  promised_ = options.promise;
  if (promised_) promises_.emplace();
}

std::vector<std::string> ProbabilityScores::metric_names(ProblemType problem,
                                                         const ClassificationOptions& options) {
  std::vector<std::string> names = {"eval_ece", "eval_brier"};
  const auto add = [&](std::initializer_list<const char*> more) {
    names.insert(names.end(), more.begin(), more.end());
  };
  if (problem == ProblemType::single_label) add({kCoverageMetric});
  if (options.calibration.temperature != 1) add({"eval_ece_calibrated", "eval_brier_calibrated"});
  if (options.min_probability || options.target_accuracy) {
    add({"eval_coverage", "eval_accuracy_covered"});
  }
  if (options.target_accuracy) add({"eval_threshold", "eval_accuracy_covered_lower"});
  if (options.promise) {
    add({"eval_promise_threshold", "eval_promise_coverage", "eval_promise_error"});
  }
  return names;
}

void ProbabilityScores::add_label(const float* logits, int32_t truth, const ScoredLabel& best,
                                  Freshness freshness) {
  const std::span<const float> row(logits, size_t(outputs_));
  probabilities_at(row, false, 1, probabilities_);
  own_.add(probabilities_, truth);
  if (calibrated_) {
    probabilities_at(row, false, temperature_, probabilities_);
    calibrated_->add(probabilities_, truth);
  }
  const bool right = best.id == truth;
  if (curve_) curve_->add(best.probability, right);
  if (promises_ && freshness == Freshness::fresh) promises_->add(best.probability, right);
  read_by_run_ += freshness == Freshness::read_by_run;
  repeated_ += freshness == Freshness::repeated;
  ++rows_;
  if (!min_probability_ || !is_sure(best.probability, *min_probability_)) return;
  ++sure_.rows;
  sure_.right += right;
}

void ProbabilityScores::add_set(const float* logits, std::span<const int32_t> truth) {
  const std::span<const float> row(logits, size_t(outputs_));
  probabilities_at(row, true, 1, probabilities_);
  own_.add(probabilities_, truth);
  if (!calibrated_) return;
  probabilities_at(row, true, temperature_, probabilities_);
  calibrated_->add(probabilities_, truth);
}

void ProbabilityScores::add_metrics(Metrics& metrics) const {
  metrics["eval_ece"] = own_.calibration_error();
  metrics["eval_brier"] = own_.brier_score();
  if (calibrated_) {
    metrics["eval_ece_calibrated"] = calibrated_->calibration_error();
    metrics["eval_brier_calibrated"] = calibrated_->brier_score();
  }
  const auto add_covered = [&](const Covered& covered) {
    metrics["eval_coverage"] = rows_ == 0 ? 0 : double(covered.rows) / double(rows_);
    if (covered.rows > 0) metrics["eval_accuracy_covered"] = covered.accuracy();
  };
  if (min_probability_) add_covered(sure_);
  if (!curve_) return;
  const auto usual = curve_->threshold_for(kUsualTarget);
  metrics[kCoverageMetric] = usual ? double(usual->covered.rows) / double(rows_) : 0;
  if (const auto made = promise(); made && made->threshold) {
    metrics["eval_promise_threshold"] = *made->threshold;
    metrics["eval_promise_coverage"] = double(made->automatic) / double(made->rows);
    metrics["eval_promise_error"] = double(made->wrong) / double(made->automatic);
  }
  if (!target_accuracy_) return;
  const auto point = curve_->threshold_for(*target_accuracy_);
  add_covered(point ? point->covered : Covered{});
  if (!point) return;
  metrics["eval_threshold"] = point->threshold;
  metrics["eval_accuracy_covered_lower"] = lower_bound(point->covered);
}

std::optional<Promise> ProbabilityScores::promise() const {
  if (!promised_) return {};
  return promises_->find(*promised_);
}

std::string ProbabilityScores::describe() const {
  if (const auto made = promise()) return in_words(*made, left_out(read_by_run_, repeated_)) + "\n";
  const auto shown = [&](double threshold, const Covered& covered) {
    return concat("--min-probability ", threshold, ": ", as_percent(covered.accuracy()), " of ",
                  covered.rows, " rows right, ", as_percent(double(covered.rows) / double(rows_)),
                  " of all");
  };
  if (min_probability_ && sure_.rows == 0) {
    return concat("--min-probability ", *min_probability_, ": no row has it\n");
  }
  if (min_probability_) return shown(*min_probability_, sure_) + "\n";
  if (!target_accuracy_) return "";
  const auto point = curve_->threshold_for(*target_accuracy_);
  if (!point) {
    return concat("no --min-probability has an accuracy of ", *target_accuracy_,
                  " on these rows\n");
  }
  return concat(shown(point->threshold, point->covered), "; with 95 % confidence at least ",
                as_percent(lower_bound(point->covered)), " right on new rows of this kind\n");
}

}  // namespace finetune
