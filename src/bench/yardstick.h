// oneDNN's matrix product, for comparison with ours. The program may be built without it.
#pragma once

#include <optional>
#include <string>

#include "core/clock.h"
#include "ops/cpu/machine_peaks.h"

namespace finetune {

// "2.6.3", or nothing without oneDNN.
std::optional<std::string> onednn_version();

// One fp32 product of 2048 x 2048 matrices on all threads(), with the instructions of select_isa().
// Takes about a tenth of a second on a few cores. Ignore the first call, which starts the threads.
// Returns nothing without oneDNN.
std::optional<TimedArithmetic> time_onednn_product(Clock clock);

}  // namespace finetune
