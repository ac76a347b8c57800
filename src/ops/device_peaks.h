// What a backend's device reaches in practice: matrix-product rate and memory bandwidth.
// Measured through the backend's own operations, for devices with memory of their own, of which
// ops/cpu/machine_peaks.h knows nothing.
#pragma once

#include "ops/backend.h"

namespace finetune {

// flop/s of one large matrix product, linear() without bias (x times its own transpose): the best
// of growing sizes, up to (16384, 4096) times (4096, 16384) or what takes 10 ms. Operands that the
// backend rounds first (bf16) are part of it.
double measure_matmul_peak(Backend& backend);

// Bytes read plus bytes written, per second, by adding one block to another: the largest ones, of
// 1 GiB each or what takes 10 ms, which no cache holds.
double measure_memory_peak(Backend& backend);

}  // namespace finetune
