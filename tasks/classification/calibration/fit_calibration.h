// Fits a model's calibration to its evaluation rows, and measures it on rows it has not seen.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tasks/calibration.h"
#include "tasks/classification/calibration/held_out_logits.h"
#include "tasks/classification/rows/folds.h"
#include "tasks/task.h"

namespace finetune {

// With fewer rows, or fewer wrong rows (several labels: wrong decisions), nothing is fitted: a
// model that is never wrong does not show whether it is overconfident. A label with fewer rows than
// kLeastLabelRows keeps the threshold one half.
inline constexpr int64_t kLeastFittingRows = 200, kLeastWrongRows = 5, kLeastLabelRows = 5;

struct CalibrationFit {
  LogitCalibration calibration;                  // of the model alone
  std::optional<MixWeights> mix;                 // replaces the temperature; only with held.margins
  std::array<MixWeights, kFitParts> part_mixes;  // with `mix`: for each part, fitted to the others
  // Cross-fitted: each part of the rows is measured with the fit to the other parts.
  // eval_temperature and eval_mix_* are fitted to all rows. Empty if nothing was fitted.
  Metrics metrics;
  CalibrationReport report;
  std::string details;  // the digits behind report.line, for the log file
};

// The temperature is 1 unless the cross-fitted likelihood is better with another. There is a mix
// only if its likelihood is better than that of the model with its temperature by more than the
// standard error of the rows' gains. `unknown`: rows whose label is not an output of the model.
// Nothing is fitted to them, but they count in the metrics.
CalibrationFit fit_calibration(const HeldOutLogits& held, const HeldOutLogits& unknown,
                               bool tunes_thresholds);

// All metrics that may occur.
std::vector<std::string> calibration_metric_names(bool tunes_thresholds, bool mixes = false);

}  // namespace finetune
