// Measures the practical peak rates of this machine, to compare results with.
#pragma once

#include "core/clock.h"

namespace finetune {

struct TimedArithmetic {
  double flop = 0, seconds = 0;
};

// Multiplies bf16 in registers only, on all threads(): an upper bound for any product. Only if
// multiplies_bf16() (isa.h).
TimedArithmetic time_bf16_multiplications(Clock clock);

// Bytes read plus bytes written, per second, when adding one block of 128 MiB to another on all
// threads() (in large pages if possible). The blocks exceed private caches, but not every shared
// cache; streaming weights and optimizer state can reach about this rate.
double measure_memory_peak(Clock clock);

}  // namespace finetune
