#include "ops/cuda/elementwise.h"

namespace finetune::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void add_kernel(const float* x, float* y, int64_t count) {
  int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) y[i] += x[i];
}

}  // namespace

void add(const float* x, float* y, int64_t count, cudaStream_t stream) {
  int64_t blocks = (count + kThreads - 1) / kThreads;
  if (blocks > 0) add_kernel<<<dim3(unsigned(blocks)), kThreads, 0, stream>>>(x, y, count);
}

}  // namespace finetune::cuda
