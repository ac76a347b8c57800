// Elementwise kernels: dropout, sums, and rows selected by index.
#include "ops/cuda/ops.h"
#include "ops/cuda/kernels/warp.h"

namespace finetune::cuda {
namespace {

constexpr int kWarps = 8;  // one row each

__global__ void dropout_kernel(Matrix x, Dropout dropout, RowNames names, Matrix y) {
  wait_for_earlier_kernels();
  dropout = dropout.taken();
  const int64_t r = int64_t(blockIdx.x) * kWarps + warp();
  if (r >= x.rows) return;
  for_dropout_columns(dropout, names, r, x.cols,
                      [=](int64_t c, float factor) { y.row(r)[c] = x.row(r)[c] * factor; });
}

__global__ void add_kernel(Matrix x, Matrix y) {
  wait_for_earlier_kernels();
  const int64_t r = blockIdx.x;
  for_columns(x.cols, [=](int64_t c) { y.row(r)[c] += x.row(r)[c]; });
}

// y row r = x row index[r]
__global__ void gather_kernel(Matrix x, const int32_t* index, Matrix y) {
  wait_for_earlier_kernels();
  const int64_t r = blockIdx.x;
  const float* from = x.row(index[r]);
  for_columns(y.cols, [=](int64_t c) { y.row(r)[c] = from[c]; });
}

// x row index[r] += dy row r; safe without atomics, since indices are distinct
__global__ void scatter_add_kernel(Matrix dy, const int32_t* index, Matrix x) {
  wait_for_earlier_kernels();
  const int64_t r = blockIdx.x;
  float* to = x.row(index[r]);
  for_columns(dy.cols, [=](int64_t c) { to[c] += dy.row(r)[c]; });
}

// y row index[r] = x row r
__global__ void scatter_kernel(Matrix x, const int32_t* index, Matrix y) {
  wait_for_earlier_kernels();
  const int64_t r = blockIdx.x;
  float* to = y.row(index[r]);
  for_columns(x.cols, [=](int64_t c) { to[c] = x.row(r)[c]; });
}

}  // namespace

void dropout(Context& context, Matrix x, Dropout dropout, RowNames names, Matrix y) {
  if (!dropout.on() && x.data == y.data) return;
  launch(context, dim3(unsigned(divide_up(x.rows, kWarps))), kWarps * kWarp, dropout_kernel, x,
         dropout, names, y);
}

void add(Context& context, Matrix x, Matrix y) {
  const RowGrid grid = row_grid(x.rows, x.cols);
  launch(context, grid.blocks, grid.threads, add_kernel, x, y);
}

void gather_rows(Context& context, Matrix x, const int32_t* index, Matrix y) {
  const RowGrid grid = row_grid(y.rows, y.cols);
  launch(context, grid.blocks, grid.threads, gather_kernel, x, index, y);
}

void scatter_rows_add(Context& context, Matrix dy, const int32_t* index, Matrix x) {
  const RowGrid grid = row_grid(dy.rows, dy.cols);
  launch(context, grid.blocks, grid.threads, scatter_add_kernel, dy, index, x);
}

void scatter_rows(Context& context, Matrix x, const int32_t* index, Matrix y) {
  const RowGrid grid = row_grid(x.rows, x.cols);
  launch(context, grid.blocks, grid.threads, scatter_kernel, x, index, y);
}

}  // namespace finetune::cuda
