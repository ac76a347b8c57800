// Numbers on an axis: ranges, round ticks, equal bins, and how a number is written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace finetune {

// For people: whole numbers as they are, others with six significant digits.
std::string report_number(double value);

struct Interval {
  double low = 0, high = 1;  // low < high
};
// Of the finite values, widened where they are all one; 0 to 1 without any.
Interval interval_of(std::span<const double> values);

// A linear map of an interval to coordinates.
struct AxisScale {
  Interval domain;
  double from = 0, to = 1;

  double operator()(double value) const {  // clamped
    const double within = std::clamp(value, domain.low, domain.high);
    return from + (within - domain.low) / (domain.high - domain.low) * (to - from);
  }
};

// Multiples of 1, 2 or 5 times a power of ten within the interval, at most `most` (>= 2) of them.
std::vector<double> round_ticks(Interval interval, int most);
// The interval widened to the multiples around it of the distance that its ticks have.
Interval rounded_outwards(Interval interval, int most);

// Bins of one width whose edges are round numbers: bin i holds [low + i width, low + (i + 1)
// width), the last one its upper edge too.
struct EqualBins {
  double low = 0, width = 1;
  int64_t count = 1;

  int64_t of(double value) const;  // clamped
  double edge(int64_t i) const { return low + double(i) * width; }
};
// At most `most` (>= 2) bins over the interval; `whole`: of whole numbers, so of a width of 1 at
// least.
EqualBins round_bins(Interval interval, int most, bool whole);

}  // namespace finetune
