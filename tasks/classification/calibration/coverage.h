// Counts how many of the rows are right whose probability is high enough.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace finetune {

// Rows whose probability is at least a threshold, and how many of them are right.
struct Covered {
  int64_t rows = 0, right = 0;

  double accuracy() const { return rows == 0 ? 0 : double(right) / double(rows); }
};

// The lower bound of the true share of right rows with 95 % confidence (one-sided Wilson).
double lower_bound(const Covered& covered);

// Counts rows by probability. Thresholds are multiples of 0.00001, so the memory does not grow with
// the number of rows.
class CoverageCurve {
 public:
  static constexpr int64_t kSteps = 100'000;

  CoverageCurve() : counts_(size_t(kSteps) + 1) {}
  void add(float probability, bool right);

  struct Point {
    double threshold = 0;
    Covered covered;
  };
  // The smallest threshold with which at least that share of the covered rows is right. Returns
  // nothing if no threshold that covers a row reaches it.
  std::optional<Point> threshold_for(double accuracy) const;
  int64_t rows() const { return rows_; }
  // Calls visit(threshold, covered) from the highest threshold to the lowest, once for each
  // threshold at which the covered rows change.
  template <typename Visit>
  void from_highest(Visit&& visit) const {
    Covered sum;
    for (int64_t step = kSteps; step >= 0; --step) {
      const Covered& own = counts_[size_t(step)];
      if (own.rows == 0) continue;
      sum.rows += own.rows;
      sum.right += own.right;
      visit(double(step) / double(kSteps), std::as_const(sum));
    }
  }

 private:
  std::vector<Covered> counts_;  // by the highest threshold that covers the row
  int64_t rows_ = 0;
};

}  // namespace finetune
