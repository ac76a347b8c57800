// Gradients of attention in bf16 on tensor cores, without sums across blocks. The formulas are in
// attention_backward.cu: blocks of one launch sum dq over the keys for their queries, or dk and dv
// over the queries for their keys.
#include "ops/cuda/attention/attention_mask.h"
#include "ops/cuda/attention/attention_tiles.h"
#include "ops/cuda/kernels/approximate.h"

namespace finetune::cuda {
namespace {

using Gradients = AttentionGradients<bfloat16>;

template <int kSize>
struct Shared {
  Stages<kSize> tiles;
  // For streamed queries; and which of a warp's sixteen keys dropout keeps for each.
  float lse[kStages<kSize>][kTileRows], weighted[kStages<kSize>][kTileRows];
  uint16_t kept[kStages<kSize>][kAttentionWarps][kTileRows];
};
static_assert(kWarpRows == 16);  // bits of `kept`

// A lane's elements of a product (16, 16): row lane / 4 + half * 8, column n * 8 + lane % 4 * 2 +
// c, stored at [n][2 * half + c].

// One turn of the block's heads; false: there is none. The rows that stay are keys (kKeysStay) or
// queries. `a` and `b` are the operands of scores and dM: K and V for keys, Q and dout for queries.
template <int kSize, bool kKeysStay>
__device__ bool sum_gradients(const AttentionShape& shape, float dropout_scale,
                              const AttentionMask& mask, const Gradients& t, int64_t staying_tile,
                              int64_t turn, Shared<kSize>& shared) {
  const int64_t b = blockIdx.x;
  const int64_t first_query = shape.queries.offsets[b], first_key = shape.keys.offsets[b];
  const int64_t queries = shape.queries.offsets[b + 1] - first_query;
  const int64_t keys = shape.keys.offsets[b + 1] - first_key;
  const int64_t own_first = kKeysStay ? first_key : first_query, own = kKeysStay ? keys : queries;
  const int64_t other_first = kKeysStay ? first_query : first_key;
  const int64_t others = kKeysStay ? queries : keys;
  const Task task = task_of(shape.heads, own, others, staying_tile, turn);
  if (task.warps == 0) return false;
  const SeenRows seen = seen_rows(shape, staying_tile * kTileRows, kTileRows, others, task.rows());
  const float to_exponent = shape.scale * kLog2E;

  uint32_t own_a[kSize / 16][4], own_b[kSize / 16][4];
  // For queries that stay. Infinity for missing queries: their probabilities become exp2(-infinity)
  // = 0.
  float own_lse[2] = {INFINITY, INFINITY}, own_weighted[2] = {};
  if (task.works) {
    load_staying<kSize>(own_a, kKeysStay ? t.k : t.q, task, own_first, own);
    load_staying<kSize>(own_b, kKeysStay ? t.v : t.dout, task, own_first, own);
    for (int half = 0; half < 2; ++half) {
      const int64_t i = task.begin + lane() / 4 + half * 8;
      if (kKeysStay || i >= queries) continue;
      own_lse[half] = t.lse.row(task.head)[first_query + i] * kLog2E;
      own_weighted[half] = t.weighted.row(task.head)[first_query + i];
    }
  }
  const uint64_t* words = task.works ? mask.of(task.head, first_query) : nullptr;
  float first[kSize / 8][4] = {}, second[kKeysStay ? kSize / 8 : 1][4] = {};
  auto load = [&](int stage, int64_t tile) {
    load_streamed<kSize>(shared.tiles.a[stage], kKeysStay ? t.q : t.k, task, shape.heads,
                         other_first + tile, others - tile);
    load_streamed<kSize>(shared.tiles.b[stage], kKeysStay ? t.dout : t.v, task, shape.heads,
                         other_first + tile, others - tile);
    const int row = int(threadIdx.x) % (task.warps * kWarp);
    if (kKeysStay && task.head < shape.heads && row < task.rows()) {
      const int64_t i = first_query + tile + row;
      const bool there = tile + row < queries;
      shared.lse[stage][task.base + row] = there ? t.lse.row(task.head)[i] * kLog2E : INFINITY;
      shared.weighted[stage][task.base + row] = there ? t.weighted.row(task.head)[i] : 0.0f;
    }
    if constexpr (kKeysStay) {
      const int rows = task.works ? task.rows() : 0;
      for (int i = lane(); i < rows && tile + i < queries; i += kWarp) {
        const uint64_t bits = mask_bits(words, (tile + i) * keys + task.begin);
        shared.kept[stage][warp()][i] = uint16_t(bits);
      }
    }
  };
  for_streamed<kSize>(task, seen, load, [&](int stage, int64_t tile) {
    uint64_t kept_keys[2] = {};  // for the queries that stay, from this lane's first column on
    for (int half = 0; half < 2; ++half) {
      const int64_t i = task.begin + lane() / 4 + half * 8;
      if (kKeysStay || i >= queries) continue;
      kept_keys[half] = mask_bits(words, i * keys + tile) >> lane() % 4 * 2;
    }
    const int count = others - tile < task.rows() ? int(others - tile) : task.rows();
    for (int step = 0; step * 16 < count; ++step) {
      const int at = task.base + step * 16;
      float score[2][4] = {}, dm[2][4] = {};
      multiply_rows<kSize>(score[0], score[1], own_a, shared.tiles.a[stage], at);
      multiply_rows<kSize>(dm[0], dm[1], own_b, shared.tiles.b[stage], at);
      const unsigned kept_here[2] = {unsigned(kept_keys[0] >> step * 16),
                                     unsigned(kept_keys[1] >> step * 16)};
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        for (int c = 0; c < 2; ++c) {
          const int column = step * 16 + n * 8 + lane() % 4 * 2 + c;  // in the tile
          const bool there = column < count;
          const unsigned kept_own =
              kKeysStay && there ? shared.kept[stage][warp()][column] >> lane() / 4 : 0;
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            float& ds = score[n][2 * half + c];
            float& m = dm[n][2 * half + c];
            const float lse = kKeysStay ? shared.lse[stage][task.base + column] : own_lse[half];
            const float weighted =
                kKeysStay ? shared.weighted[stage][task.base + column] : own_weighted[half];
            const bool kept =
                kKeysStay ? kept_own >> half * 8 & 1 : kept_here[half] >> (n * 8 + c) & 1;
            const int64_t own_row = task.begin + lane() / 4 + half * 8;
            const bool seen_here = there && sees(shape, own_row, tile + column);
            const float p = seen_here ? approximate_exp2(fmaf(ds, to_exponent, -lse)) : 0.0f;
            const float probability = kept ? p * dropout_scale : 0.0f;
            ds = fmaf(probability, m, -(p * weighted));  // times the scale at the end
            m = probability;
          }
        }
      }
      uint32_t operand[4];
      as_operand(operand, score[0], score[1]);
      add_product<kSize>(first, operand, shared.tiles.a[stage], at);
      if constexpr (kKeysStay) {
        as_operand(operand, dm[0], dm[1]);
        add_product<kSize>(second, operand, shared.tiles.b[stage], at);
      }
    }
  });
  if (!task.works) return true;
  const float scales[2] = {shape.scale, shape.scale}, ones[2] = {1.0f, 1.0f};
  store_rows<kSize>(kKeysStay ? t.dk : t.dq, task, own_first, own, first, scales);
  if constexpr (kKeysStay) store_rows<kSize>(t.dv, task, own_first, own, second, ones);
  return true;
}

// Blocks z below key_tiles sum dk and dv, the others dq. The slowest tiles come first: the last
// ones, which belong to the longest sequences.
template <int kSize>
__global__ void __launch_bounds__(kAttentionThreads, kResident<kSize>)
    attention_backward_bf16_kernel(AttentionShape shape, float dropout_scale, AttentionMask mask,
                                   Gradients t, int key_tiles) {
  wait_for_earlier_kernels();
  __shared__ Shared<kSize> shared;
  const int z = int(blockIdx.z);
  const bool keys_stay = z < key_tiles;
  const int tile = (keys_stay ? key_tiles : int(gridDim.z)) - 1 - z;
  int64_t turn = blockIdx.y;
  while (keys_stay
             ? sum_gradients<kSize, true>(shape, dropout_scale, mask, t, tile, turn, shared)
             : sum_gradients<kSize, false>(shape, dropout_scale, mask, t, tile, turn, shared)) {
    turn += gridDim.y;
  }
}

}  // namespace

void attention_backward_bf16(Context& context, const AttentionShape& shape, const Dropout& dropout,
                             const Gradients& t, Matrix mask) {
  const AttentionMask made = mask.data ? kept_attention_mask(shape, dropout, t.q.rows, mask)
                                       : attention_mask(context, shape, dropout, t.q.rows, mask);
  dim3 grid = attention_grid(shape, shape.keys, kTileRows, heads_of_a_block(shape));
  const int key_tiles = int(grid.z);
  grid.z += attention_grid(shape, shape.queries, kTileRows).z;
  for_head_size(shape.head_size, [&](auto size) {
    launch(context, grid, kAttentionThreads, attention_backward_bf16_kernel<size()>, shape,
           dropout.on() ? dropout.scale : 1.0f, made, t, key_tiles);
  });
}

}  // namespace finetune::cuda
