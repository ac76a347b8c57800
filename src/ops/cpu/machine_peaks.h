// What this machine reaches in practice, to set results beside.
#pragma once

#include "core/clock.h"
#include "core/dtype.h"

namespace finetune {

struct TimedArithmetic {
  double flop = 0, seconds = 0;
};

// Arithmetic with all threads(): one large fp32 product (2 * 2048^3) through oneDNN; for bf16 where
// it is multiplied as such, multiplications in registers, which no product can exceed. Takes about
// a tenth of a second on a few cores; the first call begins threads and counts for nothing.
TimedArithmetic time_matmul(Clock clock, DType precision);
// flop/s: the best of three.
double measure_matmul_peak(Clock clock, DType precision);

// Bytes read plus bytes written, per second, by adding one block of 128 MiB to another (large pages
// where the machine has them) with all threads(). Larger than private caches, not than every shared
// one: what streaming through weights and optimizer state can hope for.
double measure_memory_peak(Clock clock);

}  // namespace finetune
