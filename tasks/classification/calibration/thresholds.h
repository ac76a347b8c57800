// Thresholds of labels, for several labels a row, measured on rows that they were not fitted to.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tasks/classification/calibration/held_out_logits.h"
#include "tasks/classification/rows/folds.h"
#include "tasks/scores/label_scores.h"

namespace finetune {

// Returns for each label the threshold that gives the highest F1 on these rows. It lies half way
// between two neighbouring probabilities; of equal F1 the threshold nearest to one half is taken. A
// label with fewer than `least_rows` rows gets one half. Only for several labels a row.
std::vector<float> best_thresholds(const HeldOutLogits& held, RowChoice rows, double temperature,
                                   int64_t least_rows);

struct TunedThresholds {
  std::vector<float> thresholds;   // fitted to all rows; one half unless another is better
  int64_t tuned = 0;               // labels with another threshold than one half
  MultiLabelScores before, after;  // with one half; cross-fitted
};

// Returns the best threshold only for labels whose cross-fitted F1 (each part of the rows with the
// threshold of the other parts) is higher than with one half, and higher than if each row had the
// label. `temperatures`: for the rows of each part; `temperature`: of all.
TunedThresholds tuned_thresholds(const HeldOutLogits& held,
                                 const std::array<double, kFitParts>& temperatures,
                                 double temperature, int64_t least_rows);

}  // namespace finetune
