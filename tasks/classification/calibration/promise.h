// Which probability makes labels automatic, so that few of them are wrong: a promise about new
// rows.
//
// Learn then test (Angelopoulos, Bates, Candes, Jordan and Lei, 2021) with fixed-sequence testing:
// thresholds are tested one after the other, ever lower ones, by the exact binomial tail at the
// level 1 - confidence: "more than max_error of the rows with this probability are wrong". The last
// threshold before the first that fails is promised. If the rows are exchangeable with later ones,
// and neither the model nor its calibration was chosen by them, the chance that more than
// max_error of later automatic labels are wrong is at most 1 - confidence.
//
// The theorem needs thresholds and their order that do not depend on the tested rows, so every
// kPilot-th row is only used to choose them.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/calibration.h"
#include "tasks/classification/calibration/coverage.h"

namespace finetune {

// The probability that at most `wrong` of `rows` are wrong if each is with the probability
// `error`: the p-value of "more than `error` are wrong".
double binomial_tail(int64_t wrong, int64_t rows, double error);

// The fewest rows, none of them wrong, whose tail is at most 1 - confidence.
int64_t least_promised_rows(const PromiseRequest& wanted);

// Rows in the order of the data; memory does not grow with them.
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
