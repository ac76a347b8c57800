// Chooses round numbers for axes and bins.
#include "experiments/report/scale.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/text/text.h"

namespace finetune {
namespace {

// 1, 2 or 5 times a power of ten: the least that cuts `length` into at most `parts`.
double round_step(double length, int parts) {
  const double raw = length / std::max(1, parts);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

}  // namespace

std::string report_number(double value) {
  if (!std::isfinite(value)) return "none";
  if (value == std::floor(value) && std::abs(value) < 1e15) return concat(int64_t(value));
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::general, 6);
  return {buffer.data(), end.ptr};
}

Interval interval_of(std::span<const double> values) {
  Interval out{HUGE_VAL, -HUGE_VAL};
  for (double value : values) {
    if (!std::isfinite(value)) continue;
    const double within = std::clamp(value, -1e300, 1e300);  // so that a length is finite
    out.low = std::min(out.low, within);
    out.high = std::max(out.high, within);
  }
  if (out.low > out.high) return {};
  const double least = std::max(1e-9, 1e-6 * std::max(std::abs(out.low), std::abs(out.high)));
  if (out.high - out.low < least) {
    // A tenth of the smallest numbers is 0.
    const double margin = out.low == 0 ? 0.5 : std::max(1e-300, 0.1 * std::abs(out.low));
    return {out.low - margin, out.high + margin};
  }
  return out;
}

std::vector<double> round_ticks(Interval interval, int most) {
  const double step = round_step(interval.high - interval.low, most - 1);
  std::vector<double> ticks;
  const double slack = 1e-9 * step;
  for (double k = std::ceil((interval.low - slack) / step); k * step <= interval.high + slack;
       ++k) {
    ticks.push_back(k == 0 ? 0 : k * step);  // never -0
  }
  return ticks;
}

Interval rounded_outwards(Interval interval, int most) {
  const double step = round_step(interval.high - interval.low, most - 1);
  return {std::floor(interval.low / step + 1e-9) * step,
          std::ceil(interval.high / step - 1e-9) * step};
}

int64_t EqualBins::of(double value) const {
  const double place = std::floor((value - low) / width + 1e-9);
  return int64_t(std::min(std::max(0.0, place), double(count - 1)));  // of no number: 0
}

EqualBins round_bins(Interval interval, int most, bool whole) {
  double step = round_step(interval.high - interval.low, most - 1);
  if (whole) step = std::max(1.0, step);
  EqualBins bins{std::floor(interval.low / step + 1e-9) * step, step, 1};
  const double count = std::ceil((interval.high - bins.low) / step - 1e-9);
  bins.count = int64_t(std::min(std::max(1.0, count), most + 1.0));
  // Whole numbers: the greatest one has a bin of its own kind, not the upper edge of the last.
  if (whole && bins.low + double(bins.count) * step <= interval.high) ++bins.count;
  return bins;
}

}  // namespace finetune
