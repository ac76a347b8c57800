// Tests thresholds in a fixed order, and estimates how many rows a promise would need.
#include "tasks/classification/calibration/promise.h"

#include <algorithm>
#include <cmath>

namespace finetune {
namespace {

constexpr int64_t kMostTests = 200;  // thresholds, at even shares of the pilot rows
constexpr int64_t kMostNeeded = int64_t{1} << 40;

double log_of_choices(int64_t wrong, int64_t rows, double error) {
  return std::lgamma(double(rows) + 1) - std::lgamma(double(wrong) + 1) -
         std::lgamma(double(rows - wrong) + 1) + double(wrong) * std::log(error) +
         double(rows - wrong) * std::log1p(-error);
}

// A threshold at which the set of covered rows changes, and the rows that it covers.
struct Step {
  double threshold = 0;
  Covered covered;
};

std::vector<Step> steps_of(const CoverageCurve& curve) {
  std::vector<Step> steps;
  curve.from_highest([&](double threshold, const Covered& covered) {
    steps.push_back({threshold, covered});
  });
  return steps;
}

// The thresholds to test, the highest first: from the one that is most likely to pass, judging by
// the pilot rows, down to the lowest one of the pilot rows.
std::vector<double> chosen_thresholds(const CoverageCurve& pilot, const PromiseRequest& wanted) {
  constexpr int64_t kTestedOfPilot = PromiseSearch::kPilot - 1;
  const int64_t stride = std::max<int64_t>(1, pilot.rows() / kMostTests);
  std::vector<double> out;
  size_t first = 0;
  double least = 2;
  int64_t next = 1;
  for (const Step& step : steps_of(pilot)) {
    const Covered& covered = step.covered;
    if (covered.rows < next) continue;
    while (next <= covered.rows) next += stride;
    const int64_t wrong = covered.rows - covered.right;
    const double tail = binomial_tail((wrong + 1) * kTestedOfPilot,
                                      (covered.rows + 1) * kTestedOfPilot, wanted.max_error);
    if (tail < least) first = out.size();
    least = std::min(least, tail);
    out.push_back(step.threshold);
  }
  out.erase(out.begin(), out.begin() + int64_t(first));
  return out;
}

// The covered rows at a threshold. `steps` are sorted from the highest on; `at` is advanced.
Covered covered_at(const std::vector<Step>& steps, double threshold, size_t& at) {
  while (at < steps.size() && steps[at].threshold >= threshold) ++at;
  return at == 0 ? Covered{} : steps[at - 1].covered;
}

// The fewest rows at which the tail is small enough if this share of them is wrong.
int64_t rows_for(double share_wrong, const PromiseRequest& wanted) {
  const auto suffices = [&](int64_t rows) {
    const auto wrong = int64_t(std::ceil(share_wrong * double(rows)));
    return binomial_tail(wrong, rows, wanted.max_error) <= 1 - wanted.confidence;
  };
  int64_t enough = 1;
  while (!suffices(enough)) {
    if (enough > kMostNeeded) return enough;
    enough *= 2;
  }
  int64_t few = enough / 2;
  while (few + 1 < enough) {
    const int64_t middle = few + (enough - few) / 2;
    (suffices(middle) ? enough : few) = middle;
  }
  return enough;
}

// The share of wrong rows among the covered rows, with a margin for chance. Returns nothing if it
// is too large for a promise.
std::optional<double> share_wrong(const Covered& covered, const PromiseRequest& wanted) {
  const double share = double(covered.rows - covered.right + 1) / double(covered.rows + 1);
  if (share >= wanted.max_error) return {};
  return share;
}

// For too few rows for the margin of share_wrong(): half of max_error, or 0 if none is wrong.
// Returns nothing if this number of wrong rows is unlikely at max_error.
std::optional<double> share_wrong_of_few(const Covered& covered, const PromiseRequest& wanted) {
  constexpr double kUnlikely = 0.05;
  const int64_t wrong = covered.rows - covered.right;
  if (double(covered.rows + 1) * wanted.max_error > 1) return {};
  if (wrong == 0) return 0;
  const double chance = 1 - binomial_tail(wrong - 1, covered.rows, wanted.max_error);
  if (chance < kUnlikely) return {};
  return wanted.max_error / 2;
}

std::optional<int64_t> needed_rows(const CoverageCurve& tested, const PromiseRequest& wanted) {
  constexpr int64_t kFewest = 5;  // fewer rows may be right by chance
  constexpr double kTestedShare = 1 - 1 / double(PromiseSearch::kPilot);
  if (tested.rows() == 0)
    return int64_t(std::ceil(double(least_promised_rows(wanted)) / kTestedShare));
  std::optional<int64_t> of_many, of_few;
  const auto take = [&](std::optional<int64_t>& least, double wrong, const Covered& covered) {
    const double share = double(covered.rows) / double(tested.rows());
    const double rows = std::ceil(double(rows_for(wrong, wanted)) / (share * kTestedShare));
    if (rows < double(kMostNeeded)) least = std::min(least.value_or(kMostNeeded), int64_t(rows));
  };
  int64_t last = 0;
  for (const Step& step : steps_of(tested)) {
    const Covered& covered = step.covered;
    if (covered.rows * kMostTests < (last + 1) * tested.rows()) continue;
    last = covered.rows * kMostTests / tested.rows();
    if (const auto wrong = share_wrong(covered, wanted)) take(of_many, *wrong, covered);
    if (covered.rows < std::min(kFewest, tested.rows())) continue;
    if (const auto wrong = share_wrong_of_few(covered, wanted)) take(of_few, *wrong, covered);
  }
  std::optional<int64_t> least = of_many ? of_many : of_few;
  // These rows were not enough, so about twice as many are the minimum.
  if (least) least = std::max(*least, 2 * (tested.rows() + 1));
  return least;
}

}  // namespace

double binomial_tail(int64_t wrong, int64_t rows, double error) {
  if (wrong < 0) return 0;
  if (wrong >= rows) return 1;
  // Sums the smaller side from its largest term on.
  const double odds = error / (1 - error);
  const bool is_lower = double(wrong) < double(rows) * error;
  const int64_t begin = is_lower ? wrong : wrong + 1;
  double term = std::exp(log_of_choices(begin, rows, error)), sum = 0;
  for (int64_t k = begin; k >= 0 && k <= rows && term > 0; is_lower ? --k : ++k) {
    sum += term;
    if (term < 1e-17 * sum) break;
    term *= is_lower ? double(k) / (double(rows - k + 1) * odds)
                     : double(rows - k) * odds / double(k + 1);
  }
  return std::clamp(is_lower ? sum : 1 - sum, 0.0, 1.0);
}

int64_t least_promised_rows(const PromiseRequest& wanted) {
  return rows_for(0, wanted);
}

void PromiseSearch::add(float probability, bool right) {
  (rows_++ % kPilot == 0 ? pilot_ : tested_).add(probability, right);
}

Promise PromiseSearch::find(const PromiseRequest& wanted) const {
  Promise out{wanted, {}, tested_.rows(), 0, 0, {}};
  const std::vector<Step> steps = steps_of(tested_);
  size_t at = 0;
  for (const double threshold : chosen_thresholds(pilot_, wanted)) {
    const Covered covered = covered_at(steps, threshold, at);
    const int64_t wrong = covered.rows - covered.right;
    if (binomial_tail(wrong, covered.rows, wanted.max_error) > 1 - wanted.confidence) break;
    out.threshold = threshold;
    out.automatic = covered.rows;
    out.wrong = wrong;
  }
  if (!out.threshold) out.needed_rows = needed_rows(tested_, wanted);
  return out;
}

}  // namespace finetune
