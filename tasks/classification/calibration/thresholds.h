// Thresholds for several labels per row, measured on rows that they were not fitted to.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tasks/classification/calibration/held_out_logits.h"
#include "tasks/classification/rows/folds.h"
#include "tasks/scores/label_scores.h"

namespace finetune {

// Returns for each label the threshold with the highest F1 on these rows. It is half way between
// two neighbouring probabilities. If several have equal F1, it is the one nearest to one half. A
// label with fewer than `least_rows` rows gets one half. Only for several labels per row.
std::vector<float> best_thresholds(const HeldOutLogits& held, RowChoice rows, double temperature,
                                   int64_t least_rows);

struct TunedThresholds {
  std::vector<float> thresholds;   // fitted to all rows; or one half if that is not worse
  int64_t tuned = 0;               // number of labels whose threshold is not one half
  MultiLabelScores before, after;  // with one half; with cross-fitted thresholds
};

// Tunes a label's threshold only if its cross-fitted F1 (each part of the rows with the threshold
// of the other parts) is higher than with one half, and higher than if each row had the label.
// `temperatures`: for the rows of each part. `temperature`: fitted to all rows.
TunedThresholds tuned_thresholds(const HeldOutLogits& held,
                                 const std::array<double, kFitParts>& temperatures,
                                 double temperature, int64_t least_rows);

}  // namespace finetune
