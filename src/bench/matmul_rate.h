// The rate of large matrix products on this CPU, to compare results with.
#pragma once

#include <optional>

#include "core/clock.h"
#include "core/numeric/dtype.h"
#include "ops/cpu/machine_peaks.h"

namespace finetune {

// On CPUs with bf16 instructions, and for bf16: times multiplications in registers, an upper bound
// for any product. Else times one fp32 product by oneDNN (yardstick.h); nothing without oneDNN.
std::optional<TimedArithmetic> time_matmul(Clock clock, DType precision);
// Returns flop/s: the best of three timings after a warm-up.
std::optional<double> measure_matmul_peak(Clock clock, DType precision);

}  // namespace finetune
