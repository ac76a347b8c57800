// Column sums in two passes of fixed order: pieces of rows, then the pieces.
#include "ops/cuda/kernels/column_sums.h"
#include "ops/cuda/kernels/pack.h"
#include "ops/cuda/kernels/warp.h"

namespace finetune::cuda {
namespace {

constexpr int kThreads = 256;  // of a sum of parts

// Adds rows r, r + 1, ... to sums as long as kCount of them are left, whose loads are on their way
// together.
template <int kCount, typename T, int kWidth>
__device__ void add_rows(MatrixOf<T> x, int64_t c, int64_t& r, int64_t end, float (&sums)[kWidth]) {
  for (; r + kCount <= end; r += kCount) {
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      float values[kWidth];
      load(x.row(r + k) + c, values);
      for (int i = 0; i < kWidth; ++i) sums[i] += values[i];
    }
  }
}

// parts (pieces, cols): block x is a piece, block y a strip of columns, kWidth a thread. A block is
// one warp: so narrow matrices too have blocks for the whole device.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kWarp) piece_sums_kernel(MatrixOf<T> x, float* parts) {
  const int64_t c = (int64_t(blockIdx.y) * kWarp + threadIdx.x) * kWidth;
  if (c >= x.cols) return;
  const int64_t begin = int64_t(blockIdx.x) * kRowsOfASum;
  const int64_t end = begin + kRowsOfASum < x.rows ? begin + kRowsOfASum : x.rows;
  float sums[kWidth] = {};
  int64_t r = begin;
  add_rows<16>(x, c, r, end, sums);
  add_rows<4>(x, c, r, end, sums);
  add_rows<1>(x, c, r, end, sums);
  store(parts + blockIdx.x * x.cols + c, sums);
}

// A lane has a column; warp w adds pieces w, w + kWarps, ..., and the first warp what all have:
// with one thread a column the device would wait for one piece after the other.
__global__ void add_parts_kernel(const float* parts, int64_t pieces, int64_t count, PartSums to) {
  constexpr int kWarps = kThreads / kWarp;
  __shared__ float sums[kWarps][kWarp];
  const int64_t i = int64_t(blockIdx.x) * kWarp + lane();
  float sum = 0;
  if (i < count) {
#pragma unroll 4
    for (int64_t piece = warp(); piece < pieces; piece += kWarps) sum += parts[piece * count + i];
  }
  sums[warp()][lane()] = sum;
  __syncthreads();
  if (warp() != 0 || i >= count) return;
  for (int w = 1; w < kWarps; ++w) sum += sums[w][lane()];
  float& place = i < to.split ? to.first[i] : to.rest[i - to.split];
  place = to.accumulate ? place + sum : sum;
}

}  // namespace

void add_parts(Context& context, const float* parts, int64_t pieces, int64_t count, PartSums to) {
  launch(context, dim3(unsigned(divide_up(count, kWarp))), kThreads, add_parts_kernel, parts,
         pieces, count, to);
}

void column_sums(Context& context, AnyMatrix x, float* sums, bool accumulate) {
  const int64_t pieces = divide_up(x.rows, kRowsOfASum);
  float* parts = context.scratch_floats(Scratch::sums, pieces * x.cols);
  for_type(x.bf16, [&](auto element) {
    const auto typed = x.as<decltype(element)>();
    for_width(
        [&](auto width) {
          const int64_t strips = divide_up(x.cols, kWarp * width());
          launch(context, dim3(unsigned(pieces), unsigned(strips)), kWarp,
                 piece_sums_kernel<decltype(element), width()>, typed, parts);
        },
        typed);
  });
  add_parts(context, parts, pieces, x.cols, {sums, x.cols, nullptr, accumulate});
}

}  // namespace finetune::cuda
