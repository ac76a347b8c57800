// How a regression's numbers are learnt: as (number - mean) / scale.
#pragma once

#include <span>
#include <string>

namespace finetune {

struct TargetScale {
  double mean = 0;   // a float's value
  double scale = 1;  // a power of two: weights that are multiplied by it stay what they are in bf16
  // The model's own head is kept, which gives numbers as they are.
  bool has_trained_head = false;

  bool is_identity() const { return mean == 0 && scale == 1; }
  double learnt(double number) const { return (number - mean) / scale; }
  double number(double learnt) const { return learnt * scale + mean; }
};

// The mean of these, and the power of two nearest to their standard deviation. The identity for
// numbers that are all equal but for their mean's being 0. Error(data) where a float could not hold
// them.
TargetScale scale_of(std::span<const double> numbers);
// Numbers beyond this are none that scale_of() takes.
constexpr double kMostNumber = 1e30;
// What is wrong with numbers of this mean and deviation: 32-bit floats, which the exported model's
// outputs are, lie too far apart there. Empty: nothing.
std::string coarse_numbers(double mean, double deviation);

}  // namespace finetune
