// Attention's forward kernels: out = dropout(softmax(scale * Q K^T)) V for packed sequences. One
// pass over the keys: each query keeps its largest score so far, the sum of exponentials relative
// to it and the weighted sum of values, and rescales both when a larger score comes (Milakov and
// Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., FlashAttention, 2022).
// fp32 inside, whatever the type of the operands.
#include "ops/cuda/attention/attention_tiles.h"
#include "ops/cuda/attention/fused.h"
#include "ops/cuda/ops.h"

namespace finetune::cuda {
namespace {

constexpr int kRows = 4;  // queries of a warp
constexpr int kQueries = kAttentionWarps * kRows;

template <int kSize, typename T>
__global__ void __launch_bounds__(kAttentionThreads)
    attention_kernel(AttentionShape shape, Dropout dropout, MatrixOf<T> q, MatrixOf<T> k,
                     MatrixOf<T> v, MatrixOf<T> out, Matrix lse) {
  wait_for_earlier_kernels();
  dropout = dropout.taken();
  constexpr int kParts = kSize / kWarp;  // elements of a head per lane
  __shared__ float query_tile[kQueries][kSize];
  __shared__ float key_tile[kStreamed][kSize + 1];
  __shared__ float value_tile[kStreamed][kSize];
  __shared__ float p_tile[kQueries][kStreamed];  // probabilities, each warp's own rows

  const int64_t b = blockIdx.x, head = blockIdx.y;
  const int64_t first_query = shape.queries.offsets[b], first_key = shape.keys.offsets[b];
  const int64_t queries = shape.queries.offsets[b + 1] - first_query;
  const int64_t keys = shape.keys.offsets[b + 1] - first_key;
  const int64_t block_begin = int64_t(blockIdx.z) * kQueries;
  if (block_begin >= queries) return;
  const int64_t size = shape.head_size, column = head * size;
  const int row = warp() * kRows;           // this warp's first row in query_tile
  const int64_t begin = block_begin + row;  // its query
  load_tile<kSize>(query_tile, q, first_query + block_begin, queries - block_begin, column, size);

  float largest[kRows], sum[kRows], total[kRows][kParts];
  for (int r = 0; r < kRows; ++r) {
    largest[r] = -INFINITY;
    sum[r] = 0;
    for (int c = 0; c < kParts; ++c) total[r][c] = 0;
  }
  const SeenRows seen = seen_rows(shape, block_begin, kQueries, keys, kStreamed);
  for (int64_t tile = seen.begin; tile < seen.end; tile += kStreamed) {
    __syncthreads();  // all threads have read the previous tiles
    load_tile<kSize>(key_tile, k, first_key + tile, keys - tile, column, size);
    load_tile<kSize>(value_tile, v, first_key + tile, keys - tile, column, size);
    __syncthreads();

    const int64_t j = tile + lane();  // this lane's key
    float p[kRows] = {};
    for (int d = 0; d < kSize; ++d) {
      const float key = key_tile[lane()][d];
      for (int r = 0; r < kRows; ++r) p[r] = fmaf(query_tile[row + r][d], key, p[r]);
    }
    for (int r = 0; r < kRows; ++r) {
      float score = p[r] * shape.scale;
      if (shape.bias.on() && j < keys && begin + r < queries) {
        score += shape.bias.row(head, first_query, begin + r)[j];
      }
      const bool there = j < keys && sees(shape, begin + r, j);
      const float most = fmaxf(largest[r], warp_max(there ? score : -INFINITY));
      // 0 in the first round; a tile may have no key that the query sees
      const float shrink = largest[r] == most ? 1.0f : expf(largest[r] - most);
      largest[r] = most;
      p[r] = there ? expf(score - most) : 0.0f;
      sum[r] = fmaf(sum[r], shrink, warp_sum(p[r]));
      if (dropout.on() && there) {
        p[r] *= attention_factor(shape, dropout, b, head, begin + r, j, keys);
      }
      p_tile[row + r][lane()] = p[r];
      for (int c = 0; c < kParts; ++c) total[r][c] *= shrink;
    }
    __syncwarp();
    for (int i = 0; i < kStreamed; ++i) {
      for (int r = 0; r < kRows; ++r) {
        const float probability = p_tile[row + r][i];
        for (int c = 0; c < kParts; ++c) {
          total[r][c] = fmaf(probability, value_tile[i][c * kWarp + lane()], total[r][c]);
        }
      }
    }
  }
  for (int r = 0; r < kRows && begin + r < queries; ++r) {
    const int64_t to = first_query + begin + r;
    const float inverse = 1.0f / sum[r];
    for (int c = 0; c < kParts; ++c) {
      const int d = c * kWarp + lane();
      if (d < size) put(out.row(to) + column + d, total[r][c] * inverse);
    }
    if (lse.data && lane() == 0) lse.row(head)[to] = largest[r] + logf(sum[r]);
  }
}

}  // namespace

void attention(Context& context, const AttentionShape& shape, Dropout dropout, AnyMatrix q,
               AnyMatrix k, AnyMatrix v, AnyMatrix out, Matrix lse, Matrix mask) {
  if (context.fused_attention &&
      context.fused_attention->forward(context, shape, dropout, q, k, v, out, lse)) {
    return;
  }
  if (fits_tensor_cores(shape, q, k, v, out)) {
    return attention_bf16(context, shape, dropout, q.as<bfloat16>(), k.as<bfloat16>(),
                          v.as<bfloat16>(), out.as<bfloat16>(), lse, mask);
  }
  for_type(q.bf16, [&](auto element) {
    using T = decltype(element);
    for_head_size(shape.head_size, [&](auto size) {
      launch(context, attention_grid(shape, shape.queries, kQueries), kAttentionThreads,
             attention_kernel<size(), T>, shape, dropout, q.as<T>(), k.as<T>(), v.as<T>(),
             out.as<T>(), lse);
    });
  });
}

}  // namespace finetune::cuda
