// Thresholds of several labels a row, and what they are worth on rows they were not fitted to.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tasks/classification/calibration/held_out_logits.h"
#include "tasks/scores/label_scores.h"

namespace finetune {

// Of each label the least probability with which giving it has the highest F1 on these rows: half
// way between two neighbouring probabilities that occur, of equal F1 the nearest to one half. One
// half for a label that fewer than `least_rows` of the rows have. Several labels alone.
std::vector<float> best_thresholds(const HeldOutLogits& held, RowStride rows, double temperature,
                                   int64_t least_rows);

struct TunedThresholds {
  std::vector<float> thresholds;   // of all rows; one half where nothing else has shown its worth
  int64_t tuned = 0;               // labels that have another one
  MultiLabelScores before, after;  // with one half, and each half of the rows by the other's
};

// Best thresholds of those labels alone whose F1 by halves (each half of the rows with the
// threshold of the other) is above that of one half and above that of giving the label to each row.
// `temperatures`: of the rows 0, 2, ... and of the rows 1, 3, ...; `temperature`: of all.
TunedThresholds tuned_thresholds(const HeldOutLogits& held,
                                 const std::array<double, 2>& temperatures, double temperature,
                                 int64_t least_rows);

}  // namespace finetune
