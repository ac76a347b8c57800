// Numbers on an axis: ranges, round ticks, equal bins, and how a number is written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace finetune {

// Writes a number for people: a whole number as it is, others with six significant digits.
std::string report_number(double value);

struct Interval {
  double low = 0, high = 1;  // low < high
};
// The interval of the finite values, wider if they are all equal; 0 to 1 if there are none.
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
// The interval, widened to multiples of the distance between its ticks.
Interval rounded_outwards(Interval interval, int most);

// Bins of one width whose edges are round numbers: bin i holds [low + i width, low + (i + 1)
// width), the last one its upper edge too.
struct EqualBins {
  double low = 0, width = 1;
  int64_t count = 1;

  int64_t of(double value) const;  // clamped
  double edge(int64_t i) const { return low + double(i) * width; }
};
// Makes at most `most` (>= 2) bins over the interval. `whole`: for whole numbers, with a width of
// at least 1.
EqualBins round_bins(Interval interval, int most, bool whole);

}  // namespace finetune
