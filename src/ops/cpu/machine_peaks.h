// What this machine reaches in practice, to set results beside.
#pragma once

#include "core/clock.h"

namespace finetune {

struct TimedArithmetic {
  double flop = 0, seconds = 0;
};

// Multiplications of bf16 in registers alone with all threads(), which no product can exceed; only
// where multiplies_bf16() (isa.h).
TimedArithmetic time_bf16_multiplications(Clock clock);

// Bytes read plus bytes written, per second, by adding one block of 128 MiB to another (large pages
// where the machine has them) with all threads(). Larger than private caches, not than every shared
// one: what streaming through weights and optimizer state can hope for.
double measure_memory_peak(Clock clock);

}  // namespace finetune
