// Chooses the probability from which labels are automatic, so that few of them are wrong: a promise
// about new rows.
//
// Learn then test (Angelopoulos, Bates, Candes, Jordan and Lei, 2021) with fixed-sequence testing.
// Thresholds are tested from high to low. The null hypothesis is "more than max_error of the rows
// above this threshold are wrong", tested by the exact binomial tail at level 1 - confidence. The
// last threshold before the first failure is promised. If the rows are exchangeable with later
// ones, and neither the model nor its calibration was chosen by them, more than max_error of later
// automatic labels are wrong with a chance of at most 1 - confidence.
//
// In the theorem, thresholds and their order do not depend on the tested rows. So every kPilot-th
// row is used only to choose them.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/calibration.h"
#include "tasks/classification/calibration/coverage.h"

namespace finetune {

// The probability that at most `wrong` of `rows` rows are wrong if each is wrong with probability
// `error`: the p-value of "more than `error` are wrong".
double binomial_tail(int64_t wrong, int64_t rows, double error);

// The fewest rows, none of them wrong, for which the tail is at most 1 - confidence.
int64_t least_promised_rows(const PromiseRequest& wanted);

// Add rows in the order of the data. The memory does not grow with them.
class PromiseSearch {
 public:
  static constexpr int64_t kPilot = 10;

  void add(float probability, bool right);
  Promise find(const PromiseRequest& wanted) const;

 private:
  CoverageCurve pilot_, tested_;
  int64_t rows_ = 0;
};

}  // namespace finetune
