// Attention in bf16 on tensor cores, in one pass over the keys as in attention.cu. A warp has
// sixteen queries and processes 64 keys at a time. Scores and sums are fp32; probabilities are
// rounded for their product with the values.
#include "ops/cuda/attention/attention_mask.h"
#include "ops/cuda/attention/attention_tiles.h"
#include "ops/cuda/kernels/approximate.h"

namespace finetune::cuda {
namespace {

// Over the four lanes that share a row.
__device__ float row_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, 1));
  return fmaxf(value, __shfl_xor_sync(kAllLanes, value, 2));
}
__device__ float row_sum(float value) {
  value += __shfl_xor_sync(kAllLanes, value, 1);
  return value + __shfl_xor_sync(kAllLanes, value, 2);
}

// One turn of the block's heads; false: there is none.
template <int kSize>
__device__ bool attend(const AttentionShape& shape, float dropout_scale, const AttentionMask& mask,
                       const Bf16Matrix& q, const Bf16Matrix& k, const Bf16Matrix& v,
                       const Bf16Matrix& out, const Matrix& lse, int64_t turn,
                       Stages<kSize>& tiles) {  // a: keys, b: values
  constexpr int kSteps = kTileRows / 16;
  const int64_t b = blockIdx.x;
  const int64_t first_query = shape.queries.offsets[b], first_key = shape.keys.offsets[b];
  const int64_t queries = shape.queries.offsets[b + 1] - first_query;
  const int64_t keys = shape.keys.offsets[b + 1] - first_key;
  // The last tiles come first: they belong to the longest sequences and take longest.
  const int64_t block = gridDim.z - 1 - blockIdx.z;
  const Task task = task_of(shape.heads, queries, keys, block, turn);
  if (task.warps == 0) return false;
  const SeenRows seen = seen_rows(shape, block * kTileRows, kTileRows, keys, task.rows());
  const float to_exponent = shape.scale * kLog2E;

  uint32_t query[kSize / 16][4];
  if (task.works) load_staying<kSize>(query, q, task, first_query, queries);
  const uint64_t* words = task.works ? mask.of(task.head, first_query) : nullptr;
  float total[kSize / 8][4] = {}, sum[2] = {}, largest[2] = {-INFINITY, -INFINITY};
  auto load = [&](int stage, int64_t tile) {
    load_streamed<kSize>(tiles.a[stage], k, task, shape.heads, first_key + tile, keys - tile);
    load_streamed<kSize>(tiles.b[stage], v, task, shape.heads, first_key + tile, keys - tile);
  };
  for_streamed<kSize>(task, seen, load, [&](int stage, int64_t tile) {
    const int count = keys - tile < task.rows() ? int(keys - tile) : task.rows();
    float score[2 * kSteps][4] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step * 16 >= count) continue;
      multiply_rows<kSize>(score[2 * step], score[2 * step + 1], query, tiles.a[stage],
                           task.base + step * 16);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // rows lane / 4 and lane / 4 + 8
      const int64_t i = task.begin + lane() / 4 + half * 8;
      // From this lane's first column on.
      const uint64_t kept = i < queries ? mask_bits(words, i * keys + tile) >> lane() % 4 * 2 : 0;
      if (count < kTileRows) {
#pragma unroll
        for (int n = 0; n < 2 * kSteps; ++n) {
          for (int c = 0; c < 2; ++c) {
            if (n * 8 + lane() % 4 * 2 + c >= count) score[n][2 * half + c] = -INFINITY;
          }
        }
      }
      if (shape.window >= 0) {
#pragma unroll
        for (int n = 0; n < 2 * kSteps; ++n) {
          for (int c = 0; c < 2; ++c) {
            const int64_t j = tile + n * 8 + lane() % 4 * 2 + c;
            if (!sees(shape, i, j)) score[n][2 * half + c] = -INFINITY;
          }
        }
      }
      float most = largest[half];
#pragma unroll
      for (int n = 0; n < 2 * kSteps; ++n) {
        for (int c = 0; c < 2; ++c) most = fmaxf(most, score[n][2 * half + c]);
      }
      most = row_max(most);
      // A tile may have no key that the query sees.
      const float base = most == -INFINITY ? 0.0f : most;
      const float shrink =
          approximate_exp2((largest[half] - base) * to_exponent);  // 0 in the first round
      const float offset = -base * to_exponent;
      largest[half] = most;
      sum[half] *= shrink;
#pragma unroll
      for (int n = 0; n < 2 * kSteps; ++n) {
        for (int c = 0; c < 2; ++c) {
          float& x = score[n][2 * half + c];
          const float p = approximate_exp2(fmaf(x, to_exponent, offset));
          sum[half] += p;
          x = kept >> (n * 8 + c) & 1 ? p : 0.0f;
        }
      }
#pragma unroll
      for (int n = 0; n < kSize / 8; ++n) {
        total[n][2 * half] *= shrink;
        total[n][2 * half + 1] *= shrink;
      }
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step * 16 >= count) continue;
      uint32_t p[4];
      as_operand(p, score[2 * step], score[2 * step + 1]);
      add_product<kSize>(total, p, tiles.b[stage], task.base + step * 16);
    }
  });
  if (!task.works) return true;
  float factors[2];
  for (int half = 0; half < 2; ++half) {
    const float all = row_sum(sum[half]);
    factors[half] = dropout_scale / all;
    const int64_t i = task.begin + lane() / 4 + half * 8;
    if (lse.data && i < queries && lane() % 4 == 0) {
      lse.row(task.head)[first_query + i] = largest[half] * shape.scale + logf(all);
    }
  }
  store_rows<kSize>(out, task, first_query, queries, total, factors);
  return true;
}

template <int kSize>
__global__ void __launch_bounds__(kAttentionThreads, kResident<kSize>)
    attention_bf16_kernel(AttentionShape shape, float dropout_scale, AttentionMask mask,
                          Bf16Matrix q, Bf16Matrix k, Bf16Matrix v, Bf16Matrix out, Matrix lse) {
  wait_for_earlier_kernels();
  __shared__ Stages<kSize> tiles;
  int64_t turn = blockIdx.y;
  while (attend<kSize>(shape, dropout_scale, mask, q, k, v, out, lse, turn, tiles)) {
    turn += gridDim.y;
  }
}

}  // namespace

void attention_bf16(Context& context, const AttentionShape& shape, const Dropout& dropout,
                    Bf16Matrix q, Bf16Matrix k, Bf16Matrix v, Bf16Matrix out, Matrix lse,
                    Matrix mask) {
  const AttentionMask made = attention_mask(context, shape, dropout, q.rows, mask);
  const dim3 grid = attention_grid(shape, shape.queries, kTileRows, heads_of_a_block(shape));
  for_head_size(shape.head_size, [&](auto size) {
    launch(context, grid, kAttentionThreads, attention_bf16_kernel<size()>, shape,
           dropout.on() ? dropout.scale : 1.0f, made, q, k, v, out, lse);
  });
}

}  // namespace finetune::cuda
