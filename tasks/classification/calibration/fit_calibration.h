// A model's calibration from its evaluation rows, and how good it is on rows it has not seen.
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

// With fewer rows, or fewer wrong ones (several labels: wrong decisions), nothing is fitted: a
// model that is never wrong does not show whether it is too sure. A label with fewer rows keeps the
// threshold of one half.
inline constexpr int64_t kLeastFittingRows = 200, kLeastWrongRows = 5, kLeastLabelRows = 5;

struct CalibrationFit {
  LogitCalibration calibration;                  // of the model alone
  std::optional<MixWeights> mix;                 // instead of a temperature; only with held.margins
  std::array<MixWeights, kFitParts> part_mixes;  // with `mix`: for a part, fitted to the others
  // Cross-fitted: each part of the rows is measured with the fit of the other parts.
  // eval_temperature and eval_mix_* are of all rows. Empty if nothing was fitted.
  Metrics metrics;
  CalibrationReport report;
};

// The temperature is 1 unless the cross-fitted likelihood is better with one. There is a mix only
// if its likelihood is better than that of the model with its temperature by more than the standard
// error of the rows' gains. `unknown`: rows whose label is not an output. They are not fitted to,
// but count in the metrics.
CalibrationFit fit_calibration(const HeldOutLogits& held, const HeldOutLogits& unknown,
                               bool tunes_thresholds);

// All metrics that may occur.
std::vector<std::string> calibration_metric_names(bool tunes_thresholds, bool mixes = false);

}  // namespace finetune
