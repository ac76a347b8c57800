#include "ops/cuda/column_sums.h"

namespace finetune::cuda {
namespace {

constexpr int kThreads = 128;

// parts (pieces, cols): block x is a piece, block y a strip of columns.
__global__ void piece_sums_kernel(Matrix x, float* parts) {
  const int64_t c = int64_t(blockIdx.y) * kThreads + threadIdx.x;
  if (c >= x.cols) return;
  const int64_t begin = int64_t(blockIdx.x) * kRowsOfASum;
  const int64_t end = begin + kRowsOfASum < x.rows ? begin + kRowsOfASum : x.rows;
  float sum = 0;
  for (int64_t r = begin; r < end; ++r) sum += x.row(r)[c];
  parts[blockIdx.x * x.cols + c] = sum;
}

__global__ void add_parts_kernel(const float* parts, int64_t pieces, int64_t count, float* to) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  float sum = 0;
  for (int64_t piece = 0; piece < pieces; ++piece) sum += parts[piece * count + i];
  to[i] += sum;
}

}  // namespace

void add_parts(Context& context, const float* parts, int64_t pieces, int64_t count, float* to) {
  launch(context, dim3(unsigned(divide_up(count, kThreads))), kThreads, add_parts_kernel, parts,
         pieces, count, to);
}

void column_sums(Context& context, Matrix x, float* sums) {
  const int64_t pieces = divide_up(x.rows, kRowsOfASum);
  float* parts = context.scratch_floats(Scratch::sums, pieces * x.cols);
  launch(context, dim3(unsigned(pieces), unsigned(divide_up(x.cols, kThreads))), kThreads,
         piece_sums_kernel, x, parts);
  add_parts(context, parts, pieces, x.cols, sums);
}

}  // namespace finetune::cuda
