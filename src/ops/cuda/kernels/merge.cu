// Adds gradient arenas to each other: to += from. Merged rows of `from` are zero afterwards.
#include "ops/cuda/ops.h"

namespace finetune::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void merge_kernel(Addition addition, int64_t count) {
  wait_for_earlier_kernels();
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  addition.to[i] += addition.from[i];
}

// For the given rows of matrices (V, cols): block x is a row, block y a strip of columns.
__global__ void merge_rows_kernel(Addition addition, RowList rows, int64_t cols) {
  wait_for_earlier_kernels();
  const int64_t c = int64_t(blockIdx.y) * kThreads + threadIdx.x;
  if (c >= cols) return;
  const int64_t i = rows.rows[blockIdx.x] * cols + c;
  addition.to[i] += addition.from[i];
  addition.from[i] = 0;
}

}  // namespace

void merge(Context& context, std::span<const Addition> additions, int64_t count) {
  for (const Addition& addition : additions) {
    launch(context, dim3(unsigned(divide_up(count, kThreads))), kThreads, merge_kernel, addition,
           count);
  }
}

void merge_rows(Context& context, std::span<const Addition> additions, RowList rows, int64_t cols) {
  const dim3 blocks(unsigned(rows.count), unsigned(divide_up(cols, kThreads)));
  for (const Addition& addition : additions) {
    launch(context, blocks, kThreads, merge_rows_kernel, addition, rows, cols);
  }
}

}  // namespace finetune::cuda
