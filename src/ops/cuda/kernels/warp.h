// Device functions shared by kernels: ordered sums over a warp or block, walks over rows, dropout.
// Every thread of a warp must call warp_*, every thread of a block block_*.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "ops/cuda/module/api.h"

namespace finetune::cuda {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

__device__ inline int lane() {
  return int(threadIdx.x) % kWarp;
}
__device__ inline int warp() {
  return int(threadIdx.x) / kWarp;
}

// Each lane gets the same bits, because a + b equals b + a.
template <typename T>
__device__ inline T warp_sum(T value) {
  for (int apart = kWarp / 2; apart > 0; apart /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, apart);
  }
  return value;
}

// Ignores NaN unless all values are NaN.
__device__ inline float warp_max(float value) {
  for (int apart = kWarp / 2; apart > 0; apart /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, apart));
  }
  return value;
}
__device__ inline double warp_max(double value) {
  for (int apart = kWarp / 2; apart > 0; apart /= 2) {
    value = fmax(value, __shfl_xor_sync(kAllLanes, value, apart));
  }
  return value;
}

// The sum over the block's kWarps warps; the result is for thread 0.
template <int kWarps>
__device__ inline double block_sum(double value) {
  __shared__ double sums[kWarps];
  value = warp_sum(value);
  if (lane() == 0) sums[warp()] = value;
  __syncthreads();
  double total = 0;
  for (int i = 0; i < kWarps; ++i) total += sums[i];
  return total;
}

// Calls body(c) for this thread's columns of a row in a row_grid (context.h).
template <typename Body>
__device__ inline void for_columns(int64_t cols, const Body& body) {
  const int64_t step = int64_t(gridDim.y) * blockDim.x;
  for (int64_t c = int64_t(blockIdx.y) * blockDim.x + threadIdx.x; c < cols; c += step) body(c);
}

// Calls body(c, factor) for this lane's columns c of a row that one warp processes; `factor` is the
// dropout factor of element c (core/numeric/philox.h). One Philox block has the bits of eight
// elements that are 16 apart, so a lane takes those. If dropout is off, the walk is the same with
// factors of 1.
template <typename Body>
__device__ inline void for_dropout_columns(const Dropout& dropout, const RowNames& names,
                                           int64_t row, int64_t cols, const Body& body) {
  for (int64_t group = lane() / 16; group * 128 < cols; group += 2) {
    PhiloxBlock bits = {};
    if (dropout.on()) {
      const uint32_t block = uint32_t(group) * 16 + uint32_t(lane()) % 16;
      bits = philox(dropout.key, {block, names.position[row], names.sample[row], dropout.step});
    }
    for (int word = 0; word < 8; ++word) {
      const int64_t c = group * 128 + word * 16 + lane() % 16;
      if (c >= cols) break;
      const uint32_t sixteen = (bits[word / 2] >> (16 * (word % 2))) & 0xFFFFu;
      body(c, !dropout.on() ? 1.0f : sixteen >= dropout.threshold ? dropout.scale : 0.0f);
    }
  }
}

}  // namespace finetune::cuda
