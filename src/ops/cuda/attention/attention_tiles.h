// Shared parts of the attention kernels on tensor cores. A warp has sixteen rows that stay, of one
// head of a sequence; other rows are streamed through shared memory. Four warps of a block share a
// tile of 64 streamed rows. For short sequences two warps share 32 rows, or each has 16 rows and a
// head of its own, so that no warp idles.
#pragma once

#include "ops/cuda/attention/attention.h"
#include "ops/cuda/attention/mma.h"

namespace finetune::cuda {

constexpr int kTileRows = 64;
constexpr int kWarpRows = 16;
constexpr float kLog2E = 1.44269504088896341f;

// Blocks per multiprocessor: as many as possible without spilling registers.
template <int kSize>
constexpr int kResident = kSize <= 64 ? 3 : 2;

// Rows begin at multiples of 16 bytes; eight consecutive rows use eight different 16-byte groups of
// banks.
template <int kSize>
using Tile = __nv_bfloat16[kTileRows][kSize + 8];

// Two tiles per operand, so that the next one is loaded during the work on this one; for large
// heads shared memory fits only one.
template <int kSize>
constexpr int kStages = kSize <= 64 ? 2 : 1;
template <int kSize>
struct Stages {
  alignas(16) Tile<kSize> a[kStages<kSize>], b[kStages<kSize>];
};

// The work of one warp.
struct Task {
  int64_t head;   // head >= heads: no head
  int64_t begin;  // its first row that stays, in the sequence
  int warps;      // that share streamed rows
  int base;       // start of these rows in a tile
  bool works;     // has rows that stay

  __device__ int rows() const { return warps * kWarpRows; }  // streamed at a time
};

// Block x is a sequence, `turn` a group of heads, `tile` counts 64 rows that stay. All threads of a
// block without work get warps == 0.
__device__ inline Task task_of(int64_t heads, int64_t own, int64_t others, int64_t tile,
                               int64_t turn) {
  const int64_t most = own > others ? own : others;
  Task task;
  task.warps = most <= kWarpRows ? 1 : most <= 2 * kWarpRows ? 2 : kAttentionWarps;
  const int64_t group = turn * (kAttentionWarps / task.warps);
  if (tile * kTileRows >= own || group >= heads) return {0, 0, 0, 0, false};
  task.head = group + warp() / task.warps;
  task.begin = tile * kTileRows + warp() % task.warps * kWarpRows;
  task.base = warp() / task.warps * task.rows();
  task.works = task.head < heads && task.begin < own;
  return task;
}

// Starts to copy streamed rows [first, first + count) of the task's head, by all warps that share
// them; zeros behind them, and if the head does not exist.
template <int kSize>
__device__ inline void load_streamed(Tile<kSize>& tile, const Bf16Matrix& x, const Task& task,
                                     int64_t heads, int64_t first, int64_t count) {
  constexpr int kPieces = kSize / kPack;
  const int threads = task.warps * kWarp, i = int(threadIdx.x) % threads;
  const int d = i % kPieces * kPack, step = threads / kPieces;  // kPieces divides threads
  const bfloat16* from = x.row(first + i / kPieces) + task.head * kSize + d;
  int r = i / kPieces;
#pragma unroll
  for (int k = 0; k < kWarpRows * kPieces / kWarp; ++k, r += step, from += step * x.stride) {
    const bool there = r < count && task.head < heads;
    copy_async(&tile[task.base + r][d], there ? from : x.data, there);
  }
}

// Calls work(stage, tile) for each tile of the streamed rows that are seen, beginning at row `tile`
// and loaded by load(stage, tile). All threads of a block must take part because of the barriers.
template <int kSize, typename Load, typename Work>
__device__ inline void for_streamed(const Task& task, SeenRows seen, const Load& load,
                                    const Work& work) {
  constexpr bool kAhead = kStages<kSize> == 2;
  if (kAhead && seen.begin < seen.end) {
    load(0, seen.begin);
    end_copy_group();
  }
  int stage = 0;
  for (int64_t tile = seen.begin; tile < seen.end; tile += task.rows()) {
    const int64_t next = kAhead ? tile + task.rows() : tile;
    if (next < seen.end) {
      load(kAhead ? 1 - stage : 0, next);
      end_copy_group();
    }
    if (kAhead && next < seen.end) {
      wait_for_copies<1>();
    } else {
      wait_for_copies<0>();
    }
    __syncthreads();
    if (task.works) work(stage, tile);
    __syncthreads();  // all threads have read what the next round overwrites
    if (kAhead) stage = 1 - stage;
  }
}

// Loads the task's rows of x, from row `first` on, as left operands; zeros from row `count` on.
template <int kSize>
__device__ inline void load_staying(uint32_t (&a)[kSize / 16][4], const Bf16Matrix& x,
                                    const Task& task, int64_t first, int64_t count) {
  for (int k = 0; k < kSize / 16; ++k) {
    for (int i = 0; i < 4; ++i) {
      const int64_t r = task.begin + lane() / 4 + i % 2 * 8;
      const int64_t d = task.head * kSize + k * 16 + lane() % 4 * 2 + i / 2 * 8;
      a[k][i] = r < count ? *reinterpret_cast<const uint32_t*>(x.row(first + r) + d) : 0;
    }
  }
}

// c (16, 16 streamed rows), in two halves, += a * (the tile's rows from `row` on)^T
template <int kSize>
__device__ inline void multiply_rows(float (&left)[4], float (&right)[4],
                                     const uint32_t (&a)[kSize / 16][4], const Tile<kSize>& tile,
                                     int row) {
  const int r = row + lane() % 8 + lane() / 16 * 8, d = lane() / 8 % 2 * 8;
  for (int k = 0; k < kSize / 16; ++k) {
    uint32_t b[4];
    load_matrices(b, &tile[r][k * 16 + d]);
    mma(left, a[k], b[0], b[1]);
    mma(right, a[k], b[2], b[3]);
  }
}

// sums (16, kSize) += a (16, 16 streamed rows) * (the tile's rows from `row` on)
template <int kSize>
__device__ inline void add_product(float (&sums)[kSize / 8][4], const uint32_t (&a)[4],
                                   const Tile<kSize>& tile, int row) {
  const int r = row + lane() % 16, d = lane() / 16 * 8;
  for (int n = 0; n < kSize / 16; ++n) {
    uint32_t b[4];
    load_transposed(b, &tile[r][n * 16 + d]);
    mma(sums[2 * n], a, b[0], b[1]);
    mma(sums[2 * n + 1], a, b[2], b[3]);
  }
}

__device__ inline uint32_t bf16_pair(float low, float high) {
  return bf16_bits(low) | bf16_bits(high) << 16;
}

// Turns two halves of a product (16, 16) into the left operand of the next
__device__ inline void as_operand(uint32_t (&a)[4], const float (&left)[4],
                                  const float (&right)[4]) {
  a[0] = bf16_pair(left[0], left[1]);
  a[1] = bf16_pair(left[2], left[3]);
  a[2] = bf16_pair(right[0], right[1]);
  a[3] = bf16_pair(right[2], right[3]);
}

// The task's rows of `to` = sums * factor, with one factor for row lane / 4 and one for row lane /
// 4 + 8
template <int kSize>
__device__ inline void store_rows(const Bf16Matrix& to, const Task& task, int64_t first,
                                  int64_t count, const float (&sums)[kSize / 8][4],
                                  const float (&factors)[2]) {
  for (int half = 0; half < 2; ++half) {
    const int64_t r = task.begin + lane() / 4 + half * 8;
    if (r >= count) continue;
    bfloat16* row = to.row(first + r) + task.head * kSize + lane() % 4 * 2;
    for (int n = 0; n < kSize / 8; ++n) {
      *reinterpret_cast<uint32_t*>(row + n * 8) =
          bf16_pair(sums[n][2 * half] * factors[half], sums[n][2 * half + 1] * factors[half]);
    }
  }
}

// Whether these kernels support the call: bf16, heads of 32, 64 or 128, rows in packs of 16 bytes,
// no position bias.
template <typename... Matrices>
bool fits_tensor_cores(const AttentionShape& shape, const AnyMatrix& q, const Matrices&... others) {
  const int64_t size = shape.head_size;
  return q.bf16 && !shape.bias.on() && (size == 32 || size == 64 || size == 128) &&
         packs(q.as<bfloat16>()) && (packs(others.template as<bfloat16>()) && ...);
}

// attention_bf16.cu, attention_backward_bf16.cu: attention on tensor cores, for supported calls.
// Probabilities and their gradients are rounded to bf16.
void attention_bf16(Context& context, const AttentionShape& shape, const Dropout& dropout,
                    Bf16Matrix q, Bf16Matrix k, Bf16Matrix v, Bf16Matrix out, Matrix lse,
                    Matrix mask);
void attention_backward_bf16(Context& context, const AttentionShape& shape, const Dropout& dropout,
                             const AttentionGradients<bfloat16>& gradients, Matrix mask);

}  // namespace finetune::cuda
