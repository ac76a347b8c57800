// Attention's backward kernel on vectors: gradients of q, k and v by heads.
#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/attention/attention_backward.cpp"
#include <algorithm>
#include <cmath>

#include "hwy/foreach_target.h"
#include "ops/backend.h"
#include "ops/cpu/attention/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {
namespace {

// One row of scores s and of dm = dout V^T becomes m = P * mask and ds = scale * P * (mask * dm -
// D), with P = exp(s - lse) and D = sum(dout * out) as given; zero from `count` to `padded`.
HWY_INLINE void score_gradients(float* s, float* dm, int64_t count, int64_t padded, float lse,
                                float weighted, float scale, const float* factors) {
  const Floats d;
  for (int64_t i = 0; i < padded; i += kLanes) {
    const auto p = exp_of(d, hn::Sub(hn::LoadU(d, s + i), hn::Set(d, lse)));
    const auto m = factors ? hn::Mul(p, hn::LoadU(d, factors + i)) : p;
    const auto pd = hn::Mul(p, hn::Set(d, weighted));
    hn::StoreU(m, d, s + i);
    hn::StoreU(hn::Mul(hn::MulSub(m, hn::LoadU(d, dm + i), pd), hn::Set(d, scale)), d, dm + i);
  }
  for (int64_t i = count; i < padded; ++i) s[i] = dm[i] = 0;
}

// D = sum(m * dm), the same value, used if `out` is rounded too coarsely: an error in D affects all
// gradients of a row.
HWY_INLINE float weighted_sum(const float* s, const float* dm, int64_t count, float lse,
                              const float* factors) {
  LaneSum sum;
  for_lanes(count, [&](auto d, int64_t i) HWY_ATTR {
    const auto p = exp_of(d, hn::Sub(hn::LoadU(d, s + i), hn::Set(d, lse)));
    const auto m = factors ? hn::Mul(p, hn::LoadU(d, factors + i)) : p;
    sum.add(d, hn::Mul(m, hn::LoadU(d, dm + i)));
  });
  return sum.total();
}

// y += factor * x
HWY_INLINE void add_times(const float* x, float factor, float* y, int64_t count) {
  for_lanes(count, [=](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(hn::MulAdd(hn::LoadU(d, x + i), hn::Set(d, factor), hn::LoadU(d, y + i)), d, y + i);
  });
}

HWY_INLINE float dot(const float* a, const float* b, int64_t count) {
  LaneSum sum;
  for_lanes(count, [&](auto d, int64_t i)
                       HWY_ATTR { sum.add(d, hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i))); });
  return sum.total();
}

// Copies packed rows (rows, ldp) without padding to `to` (rows, cols). Prefetches the `next`
// columns, which the next head writes.
template <class T>
inline void unpack(const float* packed, int64_t ldp, int64_t rows, int64_t cols, T* to,
                   int64_t stride, int64_t next) {
  for (int64_t r = 0; r < rows; ++r) {
    prefetch(to + r * stride + cols, stride, 1, next);
    for_lanes(cols, [&](auto d, int64_t i) HWY_ATTR {
      store_as(d, hn::LoadU(d, packed + r * ldp + i), to + r * stride + i);
    });
  }
}

// The tensors of a call, (queries or keys, heads*head_size), except lse.
struct Tensors {
  Tensor q, k, v, out, lse, dout, dq, dk, dv;
};

template <class T>
void attention_backward_head(const AttentionShape& shape, const Dropout& dropout,
                             const cpu::HeadTask& task, const Tensors& t) {
  const int64_t size = shape.head_size, keys = task.keys;
  const int64_t padded_keys = cpu::round_up(keys, kLanes),
                padded_size = cpu::round_up(size, kLanes);
  const int64_t block = HWY_MIN(cpu::kQueryBlock, task.queries);
  const bool windowed = shape.window >= 0;
  const int64_t most = cpu::round_up(cpu::SeenKeys::most(shape, block, keys), kLanes);
  const int64_t elements = windowed ? most : block * keys;  // of one draw of dropout factors
  const int64_t mask = dropout.on() ? elements + 2 * kDropoutGroup + kLanes : 0;
  float* kt = cpu::scratch(cpu::Scratch::task, 2 * size * padded_keys + 3 * keys * padded_size +
                                                   block * (2 * most + 3 * padded_size) + mask);
  float* vt = kt + size * padded_keys;                  // (size, padded_keys), as kt
  float* packed_k = vt + size * padded_keys;            // (keys, padded_size)
  float* dk = packed_k + keys * padded_size;            // (keys, padded_size)
  float* dv = dk + keys * padded_size;                  // (keys, padded_size)
  float* p = dv + keys * padded_size;                   // (block, keys seen)
  float* ds = p + block * most;                         // (block, keys seen)
  float* packed_q = ds + block * most;                  // (block, padded_size)
  float* packed_dout = packed_q + block * padded_size;  // (block, padded_size)
  float* dq = packed_dout + block * padded_size;        // (block, padded_size)
  float* mask_buffer = dq + block * padded_size;

  const PositionBias& bias = shape.bias;
  if (bias.gradient && !bias.of_pairs())
    std::fill_n(bias.gradients(task.head, task.first_key), 2 * keys - 1, 0.0f);
  const int64_t next = task.another_follows ? size : 0;
  if (task.heads_to_come > 1) {  // short sequences: no earlier task has fetched the first head
    prefetch(task.at<T>(t.dq, task.first_query, size), t.dq.stride, task.queries, size);
    prefetch(task.at<T>(t.dk, task.first_key, size), t.dk.stride, keys, size);
    prefetch(task.at<T>(t.dv, task.first_key, size), t.dv.stride, keys, size);
  }
  const T* key = task.at<T>(t.k, task.first_key, size);
  pack_transposed(key, t.k.stride, keys, size, shape.scale, kt, padded_keys, next);
  pack_transposed(task.at<T>(t.v, task.first_key, size), t.v.stride, keys, size, 1.0f, vt,
                  padded_keys, next);
  pack(key, t.k.stride, keys, size, packed_k, padded_size, 0);
  if (windowed) std::fill_n(dk, 2 * keys * padded_size, 0.0f);  // and dv: blocks do not see all
  for (int64_t first = 0; first < task.queries; first += block) {
    const int64_t count = HWY_MIN(block, task.queries - first);
    const int64_t row = task.first_query + first;
    const cpu::SeenKeys seen(shape, first, count, keys);
    const int64_t padded_seen = cpu::round_up(seen.count, kLanes);
    const auto dropped = [&](int64_t begin, int64_t number) HWY_ATTR {
      return dropout_range(dropout, shape.head_name(task.head), shape.samples[task.sequence], begin,
                           number, mask_buffer);
    };
    const float* factors =
        dropout.on() && !windowed ? dropped(first * keys, count * keys) : nullptr;
    if constexpr (std::is_same_v<T, float>) {
      prefetch(task.at<T>(t.out, row, size), t.out.stride, count, size + next);
    }
    pack(task.at<T>(t.q, row, size), t.q.stride, count, size, packed_q, padded_size, next);
    pack(task.at<T>(t.dout, row, size), t.dout.stride, count, size, packed_dout, padded_size, next);
    float weighted[cpu::kQueryBlock];
    if constexpr (std::is_same_v<T, float>) {
      for (int64_t i = 0; i < count; ++i) {  // fetch distant rows ahead, not one by one below
        weighted[i] = dot(packed_dout + i * padded_size, task.at<T>(t.out, row + i, size), size);
      }
    }
    product<false>(count, padded_seen, size, {packed_q, padded_size}, kt + seen.begin, padded_keys,
                   p, padded_seen, false);
    product<false>(count, padded_seen, size, {packed_dout, padded_size}, vt + seen.begin,
                   padded_keys, ds, padded_seen, false);
    for (int64_t i = 0; i < count; ++i) {
      const float lse = t.lse.f32()[task.head * t.lse.stride + row + i];
      const cpu::QueryKeys own(shape, seen, first + i, keys);
      const float* mask_row = factors ? factors + i * keys : nullptr;
      if (dropout.on() && windowed) mask_row = dropped((first + i) * keys + seen.begin, seen.count);
      float* scores = p + i * padded_seen;
      float* dm = ds + i * padded_seen;
      if (bias.on())
        add_to(bias.row(task.head, task.first_query, first + i) + seen.begin, scores, seen.count);
      std::fill_n(scores, own.begin, -INFINITY);
      if constexpr (!std::is_same_v<T, float>) {
        weighted[i] = weighted_sum(scores, dm, own.end, lse, mask_row);
      }
      score_gradients(scores, dm, own.end, padded_seen, lse, weighted[i], shape.scale, mask_row);
      if (bias.gradient && bias.of_pairs()) {
        float* const to = bias.gradient + bias.pair_row(task.head, row + i);
        std::fill_n(to, seen.count, 0.0f);
        add_times(dm, 1 / shape.scale, to, seen.count);
      } else if (bias.gradient) {
        add_times(dm, 1 / shape.scale,
                  bias.gradient_row(task.head, task.first_key, keys, first + i) + seen.begin,
                  seen.count);
      }
    }
    const int64_t skipped = seen.begin * padded_size;
    product<true>(seen.count, padded_size, count, {p, padded_seen}, packed_dout, padded_size,
                  dv + skipped, padded_size, windowed || first > 0);
    product<true>(seen.count, padded_size, count, {ds, padded_seen}, packed_q, padded_size,
                  dk + skipped, padded_size, windowed || first > 0);
    product<false>(count, padded_size, seen.count, {ds, padded_seen}, packed_k + skipped,
                   padded_size, dq, padded_size, false);
    unpack(dq, padded_size, count, size, task.at<T>(t.dq, row, size), t.dq.stride, next);
  }
  unpack(dk, padded_size, keys, size, task.at<T>(t.dk, task.first_key, size), t.dk.stride, next);
  unpack(dv, padded_size, keys, size, task.at<T>(t.dv, task.first_key, size), t.dv.stride, next);
}

// Takes plain arguments, so that the type of Tensors stays inside the target's namespace.
void attention_backward_task(const AttentionShape& shape, const Dropout& dropout,
                             const cpu::HeadTask& task, Tensor q, Tensor k, Tensor v, Tensor out,
                             Tensor lse, Tensor dout, Tensor dq, Tensor dk, Tensor dv) {
  const auto head =
      q.dtype == DType::bf16 ? attention_backward_head<bfloat16> : attention_backward_head<float>;
  head(shape, dropout, task, {q, k, v, out, lse, dout, dq, dk, dv});
}

}  // namespace
}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/cpu/attention/bf16_attention.h"
#include "ops/cpu/cpu_backend.h"

namespace finetune {
HWY_EXPORT(attention_backward_task);

void CpuBackend::attention_backward(const AttentionShape& shape, Dropout dropout, Tensor q,
                                    Tensor k, Tensor v, Tensor out, Tensor lse, Tensor dout,
                                    Tensor dq, Tensor dk, Tensor dv, Tensor /*mask*/) {
  dropout = dropout.taken();
  const int64_t width = shape.heads * shape.head_size;
  FINETUNE_CHECK(shape.queries.count == shape.keys.count);
  for (Tensor t : {q, out, dout, dq}) FINETUNE_CHECK(t.rows == q.rows && t.cols == width);
  for (Tensor t : {k, v, dk, dv}) FINETUNE_CHECK(t.rows == k.rows && t.cols == width);
  FINETUNE_CHECK(lse.rows == shape.heads && lse.cols == q.rows);
  if (cpu::attention_on_tiles(shape, q)) {
    return cpu::bf16_attention_backward(shape, dropout, cpu::attention_factors, q, k, v, lse, dout,
                                        dq, dk, dv);
  }
  cpu::for_heads(shape, [&](const cpu::HeadTask& task) {
    HWY_DYNAMIC_DISPATCH(attention_backward_task)
    (shape, dropout, task, q, k, v, out, lse, dout, dq, dk, dv);
  });
}

}  // namespace finetune
#endif
