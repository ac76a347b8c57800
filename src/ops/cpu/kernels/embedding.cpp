// The three embeddings' sum, and the gradients of their tables.
#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/kernels/embedding.cpp"
#include "hwy/foreach_target.h"
#include "ops/backend.h"
#include "ops/cpu/simd-inl.h"
#include "ops/cpu/tasks.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {
namespace {

const float* row_of(Tensor x, int64_t row) {
  return x.f32() + row * x.stride;
}

void embed_rows(const int32_t* ids, const uint32_t* positions, const int32_t* types, Tensor word,
                Tensor position, Tensor type, Tensor y, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; ++t) {
    const float* a = row_of(word, ids[t]);
    float* out = y.f32() + t * y.stride;
    if (!position) {
      const float* c = type ? row_of(type, types[t]) : nullptr;
      for_lanes(y.cols, [=](auto d, int64_t i) HWY_ATTR {
        const auto word_part = hn::LoadU(d, a + i);
        hn::StoreU(c ? hn::Add(word_part, hn::LoadU(d, c + i)) : word_part, d, out + i);
      });
      continue;
    }
    const float* b = row_of(position, positions[t]);
    if (!type) {
      for_lanes(y.cols, [=](auto d, int64_t i) HWY_ATTR {
        hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
      });
      continue;
    }
    const float* c = row_of(type, types[t]);
    for_lanes(y.cols, [=](auto d, int64_t i) HWY_ATTR {
      const auto sum = hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, c + i));
      hn::StoreU(hn::Add(sum, hn::LoadU(d, b + i)), d, out + i);
    });
  }
}

// Adds the gradients of the words whose run of equal ids in `order` begins in [begin, end).
void word_runs(Tensor dy, const int32_t* ids, const int32_t* order, Tensor dword, int64_t begin,
               int64_t end) {
  int64_t i = begin;
  while (i > 0 && i < end && ids[order[i]] == ids[order[i - 1]]) ++i;
  while (i < end) {
    const int32_t id = ids[order[i]];
    float* sum = dword.f32() + id * dword.stride;
    for (; i < dy.rows && ids[order[i]] == id; ++i) add_to(row_of(dy, order[i]), sum, dy.cols);
  }
}

// Columns [begin, end) of the gradients of positions and types. Types are few and have long sums,
// so `sums` (types, kColumnStrip) collects some tokens before they are added to the total.
void position_columns(Tensor dy, const uint32_t* positions, const int32_t* types, Tensor dposition,
                      Tensor dtype, float* sums, int64_t begin, int64_t end) {
  constexpr int64_t kTokensOfASum = 64;
  const int64_t count = end - begin;
  for (int64_t first = 0; first < dy.rows; first += kTokensOfASum) {
    std::fill_n(sums, dtype.rows * cpu::kColumnStrip, 0.0f);
    for (int64_t t = first; t < HWY_MIN(first + kTokensOfASum, dy.rows); ++t) {
      const float* from = row_of(dy, t) + begin;
      if (dposition) add_to(from, dposition.f32() + positions[t] * dposition.stride + begin, count);
      if (dtype) add_to(from, sums + types[t] * cpu::kColumnStrip, count);
    }
    for (int64_t type = 0; type < dtype.rows; ++type) {
      add_to(sums + type * cpu::kColumnStrip, dtype.f32() + type * dtype.stride + begin, count);
    }
  }
}

}  // namespace
}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/cpu/cpu_backend.h"

namespace finetune {
HWY_EXPORT(embed_rows);
HWY_EXPORT(word_runs);
HWY_EXPORT(position_columns);

void CpuBackend::embed(const int32_t* ids, const uint32_t* positions, const int32_t* types,
                       Tensor word, Tensor position, Tensor type, Tensor y) {
  FINETUNE_CHECK(word.cols == y.cols && (!position || position.cols == y.cols));
  FINETUNE_CHECK(!type || type.cols == y.cols);
  cpu::for_ranges(y.rows, cpu::row_grain(y.cols), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(embed_rows)
    (ids, positions, types, word, position, type, y, begin, end);
  });
}

void CpuBackend::embed_backward(Tensor dy, const int32_t* ids, const uint32_t* positions,
                                const int32_t* types, const int32_t* order, Tensor dword,
                                Tensor dposition, Tensor dtype) {
  FINETUNE_CHECK(dword.cols == dy.cols && (!dposition || dposition.cols == dy.cols));
  FINETUNE_CHECK(!dtype || dtype.cols == dy.cols);
  cpu::for_ranges(dy.rows, cpu::row_grain(dy.cols), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(word_runs)(dy, ids, order, dword, begin, end);
  });
  if (!dposition && !dtype) return;
  cpu::for_ranges(dy.cols, cpu::kColumnStrip, [&](int64_t begin, int64_t end) {
    float* sums = cpu::scratch(cpu::Scratch::task, dtype.rows * cpu::kColumnStrip);
    HWY_DYNAMIC_DISPATCH(position_columns)
    (dy, positions, types, dposition, dtype, sums, begin, end);
  });
}

}  // namespace finetune
#endif
