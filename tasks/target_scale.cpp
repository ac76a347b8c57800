// Computes mean and scale of numbers; sums have one order.
#include "tasks/target_scale.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text/text.h"

namespace finetune {
namespace {

constexpr double kLeastScale = 1e-30;

double nearest_power_of_two(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // from 1/2 to 1
  return std::ldexp(1.0, fraction < std::sqrt(0.5) ? exponent - 1 : exponent);
}

bool are_equal(std::span<const double> numbers) {
  return std::all_of(numbers.begin(), numbers.end(),
                     [&](double number) { return number == numbers[0]; });
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
  if (!std::isfinite(deviation) || std::abs(mean) > kMostNumber || deviation > kMostNumber) {
    throw data_error(
        "--regression: the numbers to learn are beyond 1e30, where a model of 32-bit "
        "floats has no room; divide them by a power of ten");
  }
  TargetScale out;
  out.mean = double(float(mean));
  // If all numbers are equal, the deviation is only the rounding of their mean.
  if (!are_equal(numbers) && deviation >= kLeastScale) out.scale = nearest_power_of_two(deviation);
  return out;
}

std::string coarse_numbers(double mean, double deviation) {
  constexpr double kLeastSteps = 1000;  // of a float, per standard deviation
  const auto nearest = float(std::abs(mean));
  const double step = double(std::nextafter(nearest, HUGE_VALF)) - double(nearest);
  if (!std::isfinite(step) || deviation == 0 || deviation >= kLeastSteps * step) return "";
  return concat("the numbers lie ", format_measure(deviation), " (standard deviation) about ",
                format_measure(mean), ", where the model's 32-bit outputs are ",
                format_measure(step), " apart: subtract a constant from all of them");
}

}  // namespace finetune
