// Measures the rate of large matrix products, by the yardstick or by multiplying in registers.
#include "bench/matmul_rate.h"

#include <algorithm>

#include "bench/yardstick.h"
#include "ops/cpu/isa.h"

namespace finetune {

std::optional<TimedArithmetic> time_matmul(Clock clock, DType precision) {
  if (precision == DType::bf16 && multiplies_bf16(select_isa())) {
    return time_bf16_multiplications(clock);
  }
  return time_onednn_product(clock);
}

std::optional<double> measure_matmul_peak(Clock clock, DType precision) {
  if (!time_matmul(clock, precision)) return std::nullopt;
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    const TimedArithmetic timed = *time_matmul(clock, precision);
    best = std::max(best, timed.flop / timed.seconds);
  }
  return best;
}

}  // namespace finetune
