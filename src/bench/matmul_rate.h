// The rate of large matrix products on this CPU, to compare results with.
#pragma once

#include <optional>

#include "core/clock.h"
#include "core/numeric/dtype.h"
#include "ops/cpu/machine_peaks.h"

namespace finetune {

// For bf16 on CPUs that multiply it natively: multiplications in registers, an upper bound for any
// product. Else one fp32 product by oneDNN (yardstick.h), or nothing in a build without oneDNN.
std::optional<TimedArithmetic> time_matmul(Clock clock, DType precision);
// flop/s: the best of three after a warm-up.
std::optional<double> measure_matmul_peak(Clock clock, DType precision);

}  // namespace finetune
