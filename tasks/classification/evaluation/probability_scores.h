// How far a classifier's probabilities can be trusted: calibration error, and accuracy among the
// rows with a high probability.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tasks/classification/calibration/coverage.h"
#include "tasks/classification/calibration/promise.h"
#include "tasks/classification/calibration/reliability.h"
#include "tasks/classification/evaluation/row_source.h"
#include "tasks/classification/predictions/prediction_format.h"
#include "tasks/task.h"

namespace finetune {

// Metrics  eval_ece, eval_brier of the model's own probabilities (reliability.h)
//          eval_coverage_at_95, with one label per row: the largest share of the most probable
//          rows of which 95 % are right
//          eval_ece_calibrated, eval_brier_calibrated if options.calibration has a temperature
//          eval_coverage, eval_accuracy_covered with options.min_probability or target_accuracy
//          eval_threshold, eval_accuracy_covered_lower with target_accuracy, if it is reached
//          eval_promise_threshold, eval_promise_coverage, eval_promise_error with
//          options.promise, if the promise can be made
class ProbabilityScores {
 public:
  // Only for labels. Error(usage) for options that need one label per row if there are several.
  ProbabilityScores(ProblemType problem, int64_t outputs, const ClassificationOptions& options);

  static std::vector<std::string> metric_names(ProblemType problem,
                                               const ClassificationOptions& options);

  // The order of the rows matters only for a promise. `best`: the calibrated top label. Only fresh
  // rows count in a promise.
  void add_label(const float* logits, int32_t truth, const ScoredLabel& best,
                 Freshness freshness = Freshness::fresh);
  void add_set(const float* logits, std::span<const int32_t> truth);

  void add_metrics(Metrics& metrics) const;
  // With options.promise.
  std::optional<Promise> promise() const;
  // With options.min_probability, target_accuracy or promise: describes the covered rows, in lines
  // with line ends.
  std::string describe() const;

 private:
  bool several_labels_;
  int64_t outputs_;
  double temperature_;
  std::optional<double> min_probability_, target_accuracy_;
  int64_t rows_ = 0;
  Reliability own_;
  std::optional<Reliability> calibrated_;
  Covered sure_;
  std::optional<CoverageCurve> curve_;
  std::optional<PromiseRequest> promised_;
  std::optional<PromiseSearch> promises_;   // with promised_
  int64_t read_by_run_ = 0, repeated_ = 0;  // rows that the promise leaves out
  std::vector<double> probabilities_;
};

}  // namespace finetune
