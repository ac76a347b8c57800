// Measures the practical peaks of a device: matrix-product rate and memory bandwidth. It uses the
// backend's own operations, for devices with memory of their own (for the CPU see
// ops/cpu/machine_peaks.h).
#pragma once

#include "ops/backend.h"

namespace finetune {

// flop/s of one large matrix product, linear() without bias (x times its own transpose): the best
// of growing sizes, up to (16384, 4096) times (4096, 16384) or 10 ms. Includes rounding the
// operands if the backend does that (bf16).
double measure_matmul_peak(Backend& backend);

// Bytes read plus bytes written, per second, when adding one block to another. The blocks have up
// to 1 GiB each, or take 10 ms, so that no cache holds them.
double measure_memory_peak(Backend& backend);

}  // namespace finetune
