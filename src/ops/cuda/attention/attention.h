// Shared parts of the attention kernels. A tile is kStreamed rows of one head of one sequence, one
// row per lane; head sizes are rounded up to kSize (32, 64 or 128) and padded with zeros.
#pragma once

#include "core/switches.h"
#include "ops/cuda/kernels/pack.h"
#include "ops/cuda/kernels/warp.h"
#include "ops/cuda/module/context.h"

namespace finetune::cuda {

constexpr int kAttentionWarps = 4;
constexpr int kAttentionThreads = kAttentionWarps * kWarp;
constexpr int kStreamed = kWarp;  // rows of the tiles that are streamed
constexpr int kLargestHead = 128;

// tile (kRows, kWidth) = rows [first, first + count) of columns [column, column + size) of x, the
// rest zero. An odd kWidth avoids bank conflicts when lanes read one column of all rows.
template <int kSize, int kRows, int kWidth, typename T>
__device__ inline void load_tile(float (&tile)[kRows][kWidth], const MatrixOf<T>& x, int64_t first,
                                 int64_t count, int64_t column, int64_t size) {
  for (int i = int(threadIdx.x); i < kRows * kSize; i += kAttentionThreads) {
    const int r = i / kSize, d = i % kSize;
    tile[r][d] = r < count && d < size ? as_float(x.row(first + r)[column + d]) : 0.0f;
  }
}

// The rows of `others` rows that rows [begin, begin + count) of a block see or are seen by, from a
// whole tile of `tile` rows on: a window is the same from queries to keys and back.
struct SeenRows {
  int64_t begin, end;
};
__device__ inline SeenRows seen_rows(const AttentionShape& shape, int64_t begin, int64_t count,
                                     int64_t others, int tile) {
  if (shape.window < 0) return {0, others};
  const int64_t end = begin + count + shape.window;
  const int64_t first = begin > shape.window ? (begin - shape.window) / tile * tile : 0;
  return {first, end < others ? end : others};
}

__device__ inline bool sees(const AttentionShape& shape, int64_t i, int64_t j) {
  return shape.window < 0 || (i - j <= shape.window && j - i <= shape.window);
}

// The dropout factor for the probability of query i and key j of sequence b.
__device__ inline float attention_factor(const AttentionShape& shape, const Dropout& dropout,
                                         int64_t b, int64_t head, int64_t i, int64_t j,
                                         int64_t keys) {
  const uint32_t bits = dropout_bits(dropout.key, uint32_t(shape.first_head + head),
                                     shape.samples[b], dropout.step, uint32_t(i * keys + j));
  return bits >= dropout.threshold ? dropout.scale : 0.0f;
}

// The inputs of the backward pass; weighted (heads, Tq) = row sums of dout * out.
template <typename T>
struct AttentionGradients {
  MatrixOf<T> q, k, v, dout;
  Matrix lse, weighted;
  MatrixOf<T> dq, dk, dv;
};

// Calls run(std::integral_constant<int, kSize>) with the smallest kSize that fits the head.
template <typename Run>
void for_head_size(int64_t size, Run&& run) {
  if (size <= 32) return run(std::integral_constant<int, 32>());
  if (size <= 64) return run(std::integral_constant<int, 64>());
  if (size <= kLargestHead) return run(std::integral_constant<int, kLargestHead>());
  throw Failure("attention: heads of more than 128 are not supported");
}

// How many heads share a block, by the batch's longest sequence: blocks without work take time too.
// Of many sequences most are shorter; where one is not, the heads take turns.
inline int heads_of_a_block(const AttentionShape& shape) {
  constexpr int64_t kMany = 2048;
  if (!kCudaMasksSwitch.is_on()) return 1;
  const int64_t longest = std::max(shape.queries.max_length, shape.keys.max_length);
  const bool many = shape.queries.count * shape.heads >= kMany;
  if (longest <= 16) return kAttentionWarps;
  return longest <= 32 || (longest <= 64 && many) ? 2 : 1;
}

// Block x is a sequence, block y a head or as many as share a block, block z a tile of `rows` rows
// of the longest sequence.
inline dim3 attention_grid(const AttentionShape& shape, const Segments& segments, int rows,
                           int together = 1) {
  return dim3(unsigned(segments.count), unsigned(divide_up(shape.heads, together)),
              unsigned(divide_up(segments.max_length, rows)));
}

}  // namespace finetune::cuda
