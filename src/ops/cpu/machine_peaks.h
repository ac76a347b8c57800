// What this machine reaches in practice, to set results beside.
#pragma once

#include "core/clock.h"

namespace finetune {

// Arithmetic of one large fp32 product (2 * 2048^3) through oneDNN with all threads(), in flop/s.
// Takes about a tenth of a second on a few cores.
double measure_matmul_peak(Clock clock);

// Bytes read plus bytes written by copying a block beyond every private cache (128 MiB) with all
// threads(), per second.
double measure_copy_peak(Clock clock);

}  // namespace finetune
