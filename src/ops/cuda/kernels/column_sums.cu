// Column sums in two passes of fixed order: pieces of rows, then the pieces.
#include "ops/cuda/kernels/column_sums.h"
#include "ops/cuda/kernels/pack.h"
#include "ops/cuda/kernels/warp.h"

namespace finetune::cuda {
namespace {

constexpr int kWarps = 8;  // per piece; they take turns at its rows
constexpr int kThreads = kWarps * kWarp;
constexpr int kPartWarps = 16;  // per sum of parts

__device__ float as_bf16(float value) {
  return __uint_as_float(bf16_bits(value) << 16);
}

// Sums the block's rows of x, times kSums columns of weights if kSums > 1: parts (pieces, kSums,
// cols). Block x is a piece, block y a strip of columns, kWidth per lane. All loads of a warp are
// in flight together. Operands are rounded as in other products.
template <typename T, int kWidth, int kSums>
__global__ void __launch_bounds__(kThreads)
    piece_sums_kernel(MatrixOf<T> x, Matrix weights, bool rounds, float* parts) {
  wait_for_earlier_kernels();
  constexpr int kStrip = kWarp * kWidth, kRows = int(kRowsOfASum) / kWarps;
  constexpr bool kWeighted = kSums > 1;
  alignas(16) __shared__ float warps[kWarps][kSums][kStrip];
  const int64_t first = int64_t(blockIdx.y) * kStrip, c = first + lane() * kWidth;
  const int64_t begin = int64_t(blockIdx.x) * kRowsOfASum + warp();
  float values[kRows][kWidth] = {}, factors[kRows][kSums] = {};
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    const int64_t r = begin + k * kWarps;
    if (r < x.rows && c < x.cols) load(x.row(r) + c, values[k]);
    for (int j = 0; kWeighted && j < kSums; ++j) {
      if (r < x.rows) factors[k][j] = rounds ? as_bf16(weights.row(r)[j]) : weights.row(r)[j];
    }
    for (int i = 0; kWeighted && rounds && i < kWidth; ++i) values[k][i] = as_bf16(values[k][i]);
  }
  float sums[kSums][kWidth] = {};
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    for (int j = 0; j < kSums; ++j) {
      for (int i = 0; i < kWidth; ++i) {
        sums[j][i] =
            kWeighted ? fmaf(factors[k][j], values[k][i], sums[j][i]) : sums[j][i] + values[k][i];
      }
    }
  }
  for (int j = 0; j < kSums; ++j) store(&warps[warp()][j][lane() * kWidth], sums[j]);
  __syncthreads();
  for (int i = int(threadIdx.x); i < kSums * kStrip; i += kThreads) {
    const int j = i / kStrip, place = i % kStrip;
    if (first + place >= x.cols) continue;
    float sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += warps[w][j][place];
    parts[(int64_t(blockIdx.x) * kSums + j) * x.cols + first + place] = sum;
  }
}

// One lane per column; warp w adds pieces w, w + kPartWarps, ..., and the first warp adds the
// warps' sums. With one thread per column, each load would wait for the one before.
__global__ void add_parts_kernel(const float* parts, int64_t pieces, int64_t count, PartSums to) {
  wait_for_earlier_kernels();
  __shared__ float sums[kPartWarps][kWarp];
  const int64_t i = int64_t(blockIdx.x) * kWarp + lane();
  float sum = 0;
  if (i < count) {
#pragma unroll 8
    for (int64_t piece = warp(); piece < pieces; piece += kPartWarps) {
      sum += parts[piece * count + i];
    }
  }
  sums[warp()][lane()] = sum;
  __syncthreads();
  if (warp() != 0 || i >= count) return;
  for (int w = 1; w < kPartWarps; ++w) sum += sums[w][lane()];
  float* const place = to.of(i);
  if (place) *place = to.accumulate ? *place + sum : sum;
}

// Sums pieces of x, times kSums columns of weights; returns the number of pieces.
template <int kSums>
int64_t piece_sums(Context& context, AnyMatrix x, Matrix weights, float*& parts) {
  const int64_t pieces = divide_up(x.rows, kRowsOfASum);
  parts = context.scratch_floats(Scratch::sums, pieces * kSums * x.cols);
  for_type(x.bf16, [&](auto element) {
    const auto typed = x.as<decltype(element)>();
    for_width(
        [&](auto width) {
          const int64_t strips = divide_up(x.cols, kWarp * width());
          launch(context, dim3(unsigned(pieces), unsigned(strips)), kThreads,
                 piece_sums_kernel<decltype(element), width(), kSums>, typed, weights, context.bf16,
                 parts);
        },
        typed);
  });
  return pieces;
}

}  // namespace

void add_parts(Context& context, const float* parts, int64_t pieces, int64_t count, PartSums to) {
  launch(context, dim3(unsigned(divide_up(count, kWarp))), kPartWarps * kWarp, add_parts_kernel,
         parts, pieces, count, to);
}

void column_sums(Context& context, AnyMatrix x, float* sums, bool accumulate) {
  float* parts = nullptr;
  const int64_t pieces = piece_sums<1>(context, x, {}, parts);
  add_parts(context, parts, pieces, x.cols, {x.cols, accumulate, sums});
}

void two_weighted_sums(Context& context, Matrix weights, AnyMatrix x, Matrix sums,
                       bool accumulate) {
  float* parts = nullptr;
  const int64_t pieces = piece_sums<2>(context, x, weights, parts);
  add_parts(context, parts, pieces, 2 * x.cols, {x.cols, accumulate, sums.row(0), sums.row(1)});
}

}  // namespace finetune::cuda
