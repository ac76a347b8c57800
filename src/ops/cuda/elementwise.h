// Elementwise kernels of the CUDA backend.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace finetune::cuda {

// y += x, both (count) in device memory
void add(const float* x, float* y, int64_t count, cudaStream_t stream);

}  // namespace finetune::cuda
