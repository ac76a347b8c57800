// Counts rows by threshold and finds the threshold for a wanted accuracy.
#include "tasks/classification/calibration/coverage.h"

#include <algorithm>
#include <cmath>

namespace finetune {
namespace {

constexpr double kOneSided95 = 1.6448536269514722;  // quantile of the normal distribution

// In single precision, since --min-probability is compared in it.
float threshold_of(int64_t step) {
  return float(double(step) / double(CoverageCurve::kSteps));
}

}  // namespace

double lower_bound(const Covered& covered) {
  if (covered.rows == 0) return 0;
  const double n = double(covered.rows), share = covered.accuracy();
  const double z2 = kOneSided95 * kOneSided95;
  const double spread = kOneSided95 * std::sqrt(share * (1 - share) / n + z2 / (4 * n * n));
  return std::max(0.0, (share + z2 / (2 * n) - spread) / (1 + z2 / n));
}

void CoverageCurve::add(float probability, bool right) {
  int64_t step = std::clamp(int64_t(double(probability) * double(kSteps)), int64_t{0}, kSteps);
  while (step < kSteps && threshold_of(step + 1) <= probability) ++step;
  while (step > 0 && threshold_of(step) > probability) --step;
  Covered& covered = counts_[size_t(step)];
  ++covered.rows;
  covered.right += right;
  ++rows_;
}

std::optional<CoverageCurve::Point> CoverageCurve::threshold_for(double accuracy) const {
  std::optional<Point> found;
  Covered sum;
  for (int64_t step = kSteps; step >= 0; --step) {
    sum.rows += counts_[size_t(step)].rows;
    sum.right += counts_[size_t(step)].right;
    if (sum.rows == 0 || sum.accuracy() < accuracy) continue;
    found = {double(step) / double(kSteps), sum};
  }
  return found;
}

}  // namespace finetune
