// Attention's forward kernel on vectors in fp32; bf16 uses tiles if possible.
#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/attention/attention.cpp"
#include <algorithm>
#include <cmath>

#include "hwy/foreach_target.h"
#include "ops/backend.h"
#include "ops/cpu/attention/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {
namespace {

struct RowSum {
  float largest;
  float sum;  // of exp(x - largest)
};

// p = exp(p - max(p)) over `count` scores, times the dropout factors if given (the sum is without
// them); zero from there to `padded`.
HWY_INLINE RowSum exponentials(float* p, int64_t count, int64_t padded, const float* factors) {
  const Floats d;
  for (int64_t i = count; i < padded; ++i) p[i] = -INFINITY;
  auto most = hn::LoadU(d, p);
  for (int64_t i = kLanes; i < padded; i += kLanes) most = hn::Max(most, hn::LoadU(d, p + i));
  const float largest = hn::GetLane(hn::MaxOfLanes(d, most));
  LaneSum sum;
  for (int64_t i = 0; i < padded; i += kLanes) {
    const auto e = exp_of(d, hn::Sub(hn::LoadU(d, p + i), hn::Set(d, largest)));
    sum.add(d, e);
    hn::StoreU(factors ? hn::Mul(e, hn::LoadU(d, factors + i)) : e, d, p + i);
  }
  return {largest, sum.total()};
}

// The maximum ignores NaN but the sum does not, so a NaN reaches the output.
template <class T>
void typed_head(const AttentionShape& shape, const Dropout& dropout, const cpu::HeadTask& task,
                Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse) {
  const int64_t size = shape.head_size, keys = task.keys;
  const int64_t padded_keys = cpu::round_up(keys, kLanes),
                padded_size = cpu::round_up(size, kLanes);
  const int64_t block = HWY_MIN(cpu::kQueryBlock, task.queries);
  const bool windowed = shape.window >= 0;
  const int64_t most = cpu::round_up(cpu::SeenKeys::most(shape, block, keys), kLanes);
  const int64_t elements = windowed ? most : block * keys;  // of one draw of dropout factors
  const int64_t mask = dropout.on() ? elements + 2 * kDropoutGroup + kLanes : 0;
  float* kt = cpu::scratch(cpu::Scratch::task, size * padded_keys + keys * padded_size +
                                                   block * (most + 2 * padded_size) + mask);
  float* values = kt + size * padded_keys;       // (keys, padded_size)
  float* p = values + keys * padded_size;        // (block, keys seen)
  float* sums = p + block * most;                // (block, padded_size)
  float* packed_q = sums + block * padded_size;  // (block, padded_size), unless used in place
  float* mask_buffer = packed_q + block * padded_size;
  const int64_t next = task.another_follows ? size : 0;
  pack_transposed(task.at<T>(k, task.first_key, size), k.stride, keys, size, shape.scale, kt,
                  padded_keys, next);
  pack(task.at<T>(v, task.first_key, size), v.stride, keys, size, values, padded_size, next);

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
    prefetch(task.at<T>(q, row, size) + size, q.stride, count, next);
    Left queries{packed_q, padded_size};
    if constexpr (std::is_same_v<T, float>) {
      queries = {task.at<T>(q, row, size), q.stride};
    } else {
      pack(task.at<T>(q, row, size), q.stride, count, size, packed_q, padded_size, 0);
    }
    prefetch(task.at<T>(out, row, size), out.stride, count, size);
    product<false>(count, padded_seen, size, queries, kt + seen.begin, padded_keys, p, padded_seen,
                   false);
    float inverse[cpu::kQueryBlock];
    for (int64_t i = 0; i < count; ++i) {
      const cpu::QueryKeys own(shape, seen, first + i, keys);
      float* const scores = p + i * padded_seen;
      if (shape.bias.on()) {
        add_to(shape.bias.row(task.head, task.first_query, first + i) + seen.begin, scores,
               seen.count);
      }
      std::fill_n(scores, own.begin, -INFINITY);
      const float* kept = factors ? factors + i * keys : nullptr;
      if (dropout.on() && windowed) kept = dropped((first + i) * keys + seen.begin, seen.count);
      const RowSum s = exponentials(scores, own.end, padded_seen, kept);
      inverse[i] = 1.0f / s.sum;
      if (lse) lse.f32()[task.head * lse.stride + row + i] = s.largest + std::log(s.sum);
    }
    product<false>(count, padded_size, seen.count, {p, padded_seen},
                   values + seen.begin * padded_size, padded_size, sums, padded_size, false);
    for (int64_t i = 0; i < count; ++i) {
      const float* from = sums + i * padded_size;
      T* to = task.at<T>(out, row + i, size);
      for_lanes(size, [&](auto d, int64_t c) HWY_ATTR {
        store_as(d, hn::Mul(hn::LoadU(d, from + c), hn::Set(d, inverse[i])), to + c);
      });
    }
  }
}

const float* attention_factors(const Dropout& dropout, uint32_t row, uint32_t sample, int64_t begin,
                               int64_t count, float* buffer) {
  return dropout_range(dropout, row, sample, begin, count, buffer);
}

void attention_head(const AttentionShape& shape, const Dropout& dropout, const cpu::HeadTask& task,
                    Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse) {
  const auto head = q.dtype == DType::bf16 ? typed_head<bfloat16> : typed_head<float>;
  head(shape, dropout, task, q, k, v, out, lse);
}

}  // namespace
}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/cpu/attention/bf16_attention.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/isa.h"

namespace finetune {
HWY_EXPORT(attention_head);
HWY_EXPORT(attention_factors);

const float* cpu::attention_factors(const Dropout& dropout, uint32_t row, uint32_t sample,
                                    int64_t begin, int64_t count, float* buffer) {
  return HWY_DYNAMIC_DISPATCH(attention_factors)(dropout, row, sample, begin, count, buffer);
}

bool cpu::attention_on_tiles(const AttentionShape& shape, Tensor q) {
  return q.dtype == DType::bf16 && multiplies_bf16(select_isa()) &&
         has_bf16_attention(shape.head_size);
}

void CpuBackend::attention(const AttentionShape& shape, Dropout dropout, Tensor q, Tensor k,
                           Tensor v, Tensor out, Tensor lse, Tensor /*mask*/) {
  dropout = dropout.taken();
  const int64_t width = shape.heads * shape.head_size;
  FINETUNE_CHECK(shape.queries.count == shape.keys.count);
  FINETUNE_CHECK(q.cols == width && k.cols == width && v.cols == width && out.cols == width);
  FINETUNE_CHECK(v.rows == k.rows && out.rows == q.rows);
  FINETUNE_CHECK(!lse || (lse.rows == shape.heads && lse.cols == q.rows));
  if (cpu::attention_on_tiles(shape, q)) {
    return cpu::bf16_attention(shape, dropout, cpu::attention_factors, q, k, v, out, lse);
  }
  cpu::for_heads(shape, [&](const cpu::HeadTask& task) {
    HWY_DYNAMIC_DISPATCH(attention_head)
    (shape, dropout, task, q, k, v, out, lse);
  });
}

}  // namespace finetune
#endif
