#include "ops/cuda/column_sums.h"
#include "ops/cuda/pack.h"
#include "ops/cuda/warp.h"

namespace finetune::cuda {
namespace {

constexpr int kStrip = 128;    // threads, of columns side by side
constexpr int kThreads = 256;  // of a sum of parts

// parts (pieces, cols): block x is a piece, block y a strip of columns, kWidth a thread.
template <typename T, int kWidth>
__global__ void piece_sums_kernel(MatrixOf<T> x, float* parts) {
  const int64_t c = (int64_t(blockIdx.y) * kStrip + threadIdx.x) * kWidth;
  if (c >= x.cols) return;
  const int64_t begin = int64_t(blockIdx.x) * kRowsOfASum;
  const int64_t end = begin + kRowsOfASum < x.rows ? begin + kRowsOfASum : x.rows;
  float sums[kWidth] = {};
#pragma unroll 8
  for (int64_t r = begin; r < end; ++r) {
    float values[kWidth];
    load(x.row(r) + c, values);
    for (int i = 0; i < kWidth; ++i) sums[i] += values[i];
  }
  store(parts + blockIdx.x * x.cols + c, sums);
}

// A lane has a column; warp w adds pieces w, w + kWarps, ..., and the first warp what all have:
// with one thread a column the device would wait for one piece after the other.
__global__ void add_parts_kernel(const float* parts, int64_t pieces, int64_t count, float* to,
                                 int64_t split, float* rest) {
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
  (i < split ? to[i] : rest[i - split]) += sum;
}

}  // namespace

void add_parts(Context& context, const float* parts, int64_t pieces, int64_t count, float* to,
               int64_t split, float* rest) {
  launch(context, dim3(unsigned(divide_up(count, kWarp))), kThreads, add_parts_kernel, parts,
         pieces, count, to, split, rest);
}

void add_parts(Context& context, const float* parts, int64_t pieces, int64_t count, float* to) {
  add_parts(context, parts, pieces, count, to, count, nullptr);
}

void column_sums(Context& context, AnyMatrix x, float* sums) {
  const int64_t pieces = divide_up(x.rows, kRowsOfASum);
  float* parts = context.scratch_floats(Scratch::sums, pieces * x.cols);
  for_type(x.bf16, [&](auto element) {
    const auto typed = x.as<decltype(element)>();
    for_width(
        [&](auto width) {
          const int64_t strips = divide_up(x.cols, kStrip * width());
          launch(context, dim3(unsigned(pieces), unsigned(strips)), kStrip,
                 piece_sums_kernel<decltype(element), width()>, typed, parts);
        },
        typed);
  });
  add_parts(context, parts, pieces, x.cols, sums);
}

}  // namespace finetune::cuda
