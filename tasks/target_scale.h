// How a regression's numbers are scaled for training: as (number - mean) / scale.
#pragma once

#include <span>
#include <string>

namespace finetune {

struct TargetScale {
  double mean = 0;   // representable as a float
  double scale = 1;  // a power of two, so that scaling weights by it keeps their bf16 values
  // The model's own head is kept; it gives unscaled numbers.
  bool has_trained_head = false;

  bool is_identity() const { return mean == 0 && scale == 1; }
  double learnt(double number) const { return (number - mean) / scale; }
  double number(double learnt) const { return learnt * scale + mean; }
};

// The mean of the numbers, and the power of two nearest to their standard deviation. If all numbers
// are equal, the scale is 1. Error(data) if the numbers do not fit into floats.
TargetScale scale_of(std::span<const double> numbers);
// The largest number that scale_of() accepts.
constexpr double kMostNumber = 1e30;
// Describes the fault of numbers with this mean and deviation: 32-bit floats, the exported model's
// outputs, are too far apart there. Returns "" if there is no fault.
std::string coarse_numbers(double mean, double deviation);

}  // namespace finetune
