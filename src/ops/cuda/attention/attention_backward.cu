// Gradients of attention. With P = exp(scale * Q K^T - lse), M = P * mask, dM = dout V^T and D =
// row sums of dout * out (equal to those of P * dP): dS = scale * P * (mask * dM - D); dq = dS K;
// dk = dS^T Q; dv = M^T dout (Dao et al., FlashAttention, 2022, with dropout as in ops/backend.h).
// Nothing is summed across blocks: one launch sums dq over the keys for a block's queries, another
// sums dk and dv over the queries for a block's keys. Both recompute the scores and are the same
// kernel: some rows stay, the others are streamed.
#include "ops/cuda/attention/attention_tiles.h"
#include "ops/cuda/attention/fused.h"
#include "ops/cuda/ops.h"

namespace finetune::cuda {
namespace {

// weighted (heads, Tq) = D. A thread has eight elements; `group` threads have a head of a query.
template <typename T>
__global__ void weighted_packs_kernel(AttentionShape shape, int group, MatrixOf<T> out,
                                      MatrixOf<T> dout, Matrix weighted) {
  wait_for_earlier_kernels();
  const int64_t i = int64_t(blockIdx.x) * kAttentionThreads + threadIdx.x;
  const int64_t packs_of_row = shape.heads * group, r = i / packs_of_row, pack = i % packs_of_row;
  float a[kPack] = {}, b[kPack] = {}, sum = 0;
  if (r < out.rows) {
    load(dout.row(r) + pack * kPack, a);
    load(out.row(r) + pack * kPack, b);
  }
  for (int k = 0; k < kPack; ++k) sum = fmaf(a[k], b[k], sum);
  for (int apart = group / 2; apart > 0; apart /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, apart);
  }
  if (r < out.rows && pack % group == 0) weighted.row(pack / group)[r] = sum;
}

// The same for heads or rows of any size. Block x is a query, block y a group of heads, one warp
// per head.
template <typename T>
__global__ void weighted_kernel(AttentionShape shape, MatrixOf<T> out, MatrixOf<T> dout,
                                Matrix weighted) {
  wait_for_earlier_kernels();
  const int64_t r = blockIdx.x, head = int64_t(blockIdx.y) * kAttentionWarps + warp();
  if (head >= shape.heads) return;
  const int64_t column = head * shape.head_size;
  float sum = 0;
  for (int64_t d = lane(); d < shape.head_size; d += kWarp) {
    sum = fmaf(as_float(dout.row(r)[column + d]), as_float(out.row(r)[column + d]), sum);
  }
  sum = warp_sum(sum);
  if (lane() == 0) weighted.row(head)[r] = sum;
}

// The rows that stay are keys (kKeysStay) or queries. `a` and `b` are the operands of scores and
// dM: K and V for keys, Q and dout for queries.
template <int kSize, bool kKeysStay, typename T>
__global__ void __launch_bounds__(kAttentionThreads)
    attention_backward_kernel(AttentionShape shape, Dropout dropout, AttentionGradients<T> t) {
  wait_for_earlier_kernels();
  dropout = dropout.taken();
  constexpr int kRows = kSize <= 64 ? 4 : 2;  // per warp; shared memory fits no more
  constexpr int kStaying = kAttentionWarps * kRows;
  constexpr int kParts = kSize / kWarp;
  __shared__ float own_a[kStaying][kSize], own_b[kStaying][kSize];
  __shared__ float other_a[kStreamed][kSize + 1], other_b[kStreamed][kSize + 1];
  // each warp has its own rows
  __shared__ float ds_tile[kStaying][kStreamed], m_tile[kStaying][kStreamed];

  const int64_t b = blockIdx.x, head = blockIdx.y;
  const int64_t first_query = shape.queries.offsets[b], first_key = shape.keys.offsets[b];
  const int64_t queries = shape.queries.offsets[b + 1] - first_query;
  const int64_t keys = shape.keys.offsets[b + 1] - first_key;
  const int64_t own_first = kKeysStay ? first_key : first_query, own = kKeysStay ? keys : queries;
  const int64_t other_first = kKeysStay ? first_query : first_key;
  const int64_t others = kKeysStay ? queries : keys;
  const int64_t block_begin = int64_t(blockIdx.z) * kStaying;
  if (block_begin >= own) return;
  const int64_t size = shape.head_size, column = head * size;
  const int row = warp() * kRows;           // this warp's first row in the tiles that stay
  const int64_t begin = block_begin + row;  // its row in the sequence
  load_tile<kSize>(own_a, kKeysStay ? t.k : t.q, own_first + block_begin, own - block_begin, column,
                   size);
  load_tile<kSize>(own_b, kKeysStay ? t.v : t.dout, own_first + block_begin, own - block_begin,
                   column, size);

  float first[kRows][kParts] = {}, second[kRows][kParts] = {};
  const SeenRows seen = seen_rows(shape, block_begin, kStaying, others, kStreamed);
  for (int64_t tile = seen.begin; tile < seen.end; tile += kStreamed) {
    __syncthreads();  // all threads have read the previous tiles
    load_tile<kSize>(other_a, kKeysStay ? t.q : t.k, other_first + tile, others - tile, column,
                     size);
    load_tile<kSize>(other_b, kKeysStay ? t.dout : t.v, other_first + tile, others - tile, column,
                     size);
    __syncthreads();

    float score[kRows] = {}, dm[kRows] = {};
    for (int d = 0; d < kSize; ++d) {
      const float a = other_a[lane()][d], bb = other_b[lane()][d];
      for (int r = 0; r < kRows; ++r) {
        score[r] = fmaf(own_a[row + r][d], a, score[r]);
        dm[r] = fmaf(own_b[row + r][d], bb, dm[r]);
      }
    }
    const int64_t other = tile + lane();
    for (int r = 0; r < kRows; ++r) {
      ds_tile[row + r][lane()] = m_tile[row + r][lane()] = 0;
      if (begin + r >= own || other >= others) continue;
      const int64_t i = kKeysStay ? other : begin + r, j = kKeysStay ? begin + r : other;
      if (!sees(shape, i, j)) continue;
      const float bias = shape.bias.on() ? shape.bias.row(head, first_query, i)[j] : 0.0f;
      const float p = expf(score[r] * shape.scale + bias - t.lse.row(head)[first_query + i]);
      const float m = dropout.on() ? p * attention_factor(shape, dropout, b, head, i, j, keys) : p;
      m_tile[row + r][lane()] = m;
      const float of_score = m * dm[r] - p * t.weighted.row(head)[first_query + i];
      ds_tile[row + r][lane()] = shape.scale * of_score;
      if (!kKeysStay && shape.bias.gradient && shape.bias.of_pairs()) {
        shape.bias.gradient[shape.bias.pair_row(head, first_query + i) + j] = of_score;
      }
    }
    __syncwarp();
    for (int i = 0; i < kStreamed; ++i) {
      for (int r = 0; r < kRows; ++r) {
        const float gradient = ds_tile[row + r][i];
        for (int c = 0; c < kParts; ++c) {
          first[r][c] = fmaf(gradient, other_a[i][c * kWarp + lane()], first[r][c]);
        }
        if constexpr (kKeysStay) {
          const float probability = m_tile[row + r][i];
          for (int c = 0; c < kParts; ++c) {
            second[r][c] = fmaf(probability, other_b[i][c * kWarp + lane()], second[r][c]);
          }
        }
      }
    }
  }
  for (int r = 0; r < kRows && begin + r < own; ++r) {
    for (int c = 0; c < kParts; ++c) {
      const int d = c * kWarp + lane();
      if (d >= size) continue;
      put((kKeysStay ? t.dk : t.dq).row(own_first + begin + r) + column + d, first[r][c]);
      if constexpr (kKeysStay) put(t.dv.row(own_first + begin + r) + column + d, second[r][c]);
    }
  }
}

template <typename T>
__device__ float head_product(const T* a, const T* b, int64_t size) {
  float sum = 0;
  for (int64_t d = 0; d < size; ++d) sum = fmaf(as_float(a[d]), as_float(b[d]), sum);
  return sum;
}

// The gradient of a bias by distance. Block x is a sequence, block y a head; a thread sums a
// distance over the queries in order, and computes the scores again.
template <typename T>
__global__ void bias_gradient_kernel(AttentionShape shape, Dropout dropout,
                                     AttentionGradients<T> t) {
  wait_for_earlier_kernels();
  dropout = dropout.taken();
  const int64_t b = blockIdx.x, head = blockIdx.y, size = shape.head_size, column = head * size;
  const int64_t first_query = shape.queries.offsets[b], first_key = shape.keys.offsets[b];
  const int64_t queries = shape.queries.offsets[b + 1] - first_query;
  const int64_t keys = shape.keys.offsets[b + 1] - first_key;
  for (int64_t place = threadIdx.x; place < 2 * keys - 1; place += blockDim.x) {
    const int64_t distance = place - keys + 1;
    const int64_t end = sees(shape, 0, distance) ? queries : 0;
    float sum = 0;
    for (int64_t i = distance < 0 ? -distance : 0; i < end && i + distance < keys; ++i) {
      const int64_t j = i + distance, query = first_query + i, key = first_key + j;
      const float score = head_product(t.q.row(query) + column, t.k.row(key) + column, size);
      const float dm = head_product(t.dout.row(query) + column, t.v.row(key) + column, size);
      const float p = expf(score * shape.scale + shape.bias.row(head, first_query, i)[j] -
                           t.lse.row(head)[query]);
      const float m = dropout.on() ? p * attention_factor(shape, dropout, b, head, i, j, keys) : p;
      sum += m * dm - p * t.weighted.row(head)[query];
    }
    shape.bias.gradients(head, first_key)[place] = sum;
  }
}

template <int kSize, bool kKeysStay, typename T>
void launch_side(Context& context, const AttentionShape& shape, const Dropout& dropout,
                 const AttentionGradients<T>& t) {
  constexpr int kStaying = kAttentionWarps * (kSize <= 64 ? 4 : 2);
  launch(context, attention_grid(shape, kKeysStay ? shape.keys : shape.queries, kStaying),
         kAttentionThreads, attention_backward_kernel<kSize, kKeysStay, T>, shape, dropout, t);
}

}  // namespace

void attention_backward(Context& context, const AttentionShape& shape, Dropout dropout, AnyMatrix q,
                        AnyMatrix k, AnyMatrix v, AnyMatrix out, Matrix lse, AnyMatrix dout,
                        AnyMatrix dq, AnyMatrix dk, AnyMatrix dv, Matrix mask) {
  if (q.rows == 0) return;
  if (context.fused_attention && context.fused_attention->backward(context, shape, dropout, q, k, v,
                                                                   out, lse, dout, dq, dk, dv)) {
    return;
  }
  const Matrix weighted = {context.scratch_floats(Scratch::weighted, shape.heads * q.rows),
                           shape.heads, q.rows, q.rows};
  for_type(q.bf16, [&](auto element) {
    using T = decltype(element);
    const int64_t group = shape.head_size / kPack;
    if (packs(out.as<T>()) && packs(dout.as<T>()) && shape.head_size % kPack == 0 &&
        kWarp % group == 0) {
      const int64_t threads = q.rows * shape.heads * group;
      launch(context, dim3(unsigned(divide_up(threads, kAttentionThreads))), kAttentionThreads,
             weighted_packs_kernel<T>, shape, int(group), out.as<T>(), dout.as<T>(), weighted);
    } else {
      launch(context, dim3(unsigned(q.rows), unsigned(divide_up(shape.heads, kAttentionWarps))),
             kAttentionThreads, weighted_kernel<T>, shape, out.as<T>(), dout.as<T>(), weighted);
    }
    const AttentionGradients<T> t = {q.as<T>(), k.as<T>(),  v.as<T>(),  dout.as<T>(), lse,
                                     weighted,  dq.as<T>(), dk.as<T>(), dv.as<T>()};
    if (shape.bias.gradient && !shape.bias.of_pairs()) {
      launch(context, dim3(unsigned(shape.keys.count), unsigned(shape.heads)), kAttentionThreads,
             bias_gradient_kernel<T>, shape, dropout, t);
    }
    if constexpr (std::is_same_v<T, bfloat16>) {
      // With `out`: only then has the forward pass made a mask.
      if (fits_tensor_cores(shape, q, k, v, out, dout, dq, dk, dv)) {
        return attention_backward_bf16(context, shape, dropout, t, mask);
      }
    }
    for_head_size(shape.head_size, [&](auto size) {
      launch_side<size(), true>(context, shape, dropout, t);
      launch_side<size(), false>(context, shape, dropout, t);  // may overwrite the bias of pairs
    });
  });
}

}  // namespace finetune::cuda
