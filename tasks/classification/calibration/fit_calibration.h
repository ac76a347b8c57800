// A model's calibration from its evaluation rows, and how good it is on rows it has not seen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tasks/calibration.h"
#include "tasks/classification/calibration/held_out_logits.h"
#include "tasks/task.h"

namespace finetune {

// With fewer rows, or fewer wrong ones (of several labels: wrong decisions), there is no fit: what
// is never wrong says nothing about being too sure. A label with fewer rows keeps one half.
inline constexpr int64_t kLeastFittingRows = 200, kLeastWrongRows = 5, kLeastLabelRows = 5;

struct CalibrationFit {
  LogitCalibration calibration;   // of the model alone
  std::optional<MixWeights> mix;  // instead of a temperature; only with held.margins
  // Cross-fitted: each half of the rows by what was fitted to the other half. eval_temperature and
  // eval_mix_* are of all rows. Empty where nothing was fitted.
  Metrics metrics;
  CalibrationReport report;
};

// Of the temperature: 1 where the cross-fitted likelihood is not better than without. Of the mix:
// none where it is not better than that of the model with its temperature by more than the standard
// error of the rows' gains. `unknown`: rows whose label is no output, to which nothing is fitted;
// they count in the metrics.
CalibrationFit fit_calibration(const HeldOutLogits& held, const HeldOutLogits& unknown,
                               bool tunes_thresholds);

// The metrics there can be.
std::vector<std::string> calibration_metric_names(bool tunes_thresholds, bool mixes = false);

}  // namespace finetune
