// Mean and scale of numbers, in one order.
#include "tasks/target_scale.h"

#include <cmath>

#include "core/error.h"

namespace finetune {
namespace {

constexpr double kLeastScale = 1e-30, kMostScale = 1e30;

double nearest_power_of_two(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // from 1/2 to 1
  return std::ldexp(1.0, fraction < std::sqrt(0.5) ? exponent - 1 : exponent);
}

}  // namespace

TargetScale scale_of(std::span<const double> numbers) {
  if (numbers.empty()) return {};
  const double count = double(numbers.size());
  double sum = 0, squares = 0;
  for (double number : numbers) sum += number;
  const double mean = sum / count;
  for (double number : numbers) squares += (number - mean) * (number - mean);
  const double deviation = std::sqrt(squares / count);
  if (!std::isfinite(deviation) || std::abs(mean) > kMostScale || deviation > kMostScale) {
    throw data_error(
        "--regression: the numbers to learn are beyond 1e30, where a model of 32-bit "
        "floats has no room; divide them by a power of ten");
  }
  TargetScale out;
  out.mean = double(float(mean));
  if (deviation >= kLeastScale) out.scale = nearest_power_of_two(deviation);
  return out;
}

}  // namespace finetune
