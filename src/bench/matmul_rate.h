// The rate of large matrix products on this CPU, to set results beside.
#pragma once

#include <optional>

#include "core/clock.h"
#include "core/numeric/dtype.h"
#include "ops/cpu/machine_peaks.h"

namespace finetune {

// For bf16 where it is multiplied as such, multiplications in registers, which no product can
// exceed; else one fp32 product by the yardstick, nothing where none is built in.
std::optional<TimedArithmetic> time_matmul(Clock clock, DType precision);
// flop/s: the best of three, after one that warms up.
std::optional<double> measure_matmul_peak(Clock clock, DType precision);

}  // namespace finetune
