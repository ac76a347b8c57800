// Adds gradient arenas to each other in a given order.
#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/kernels/merge.cpp"
#include "hwy/foreach_target.h"
#include "ops/backend.h"
#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {
namespace {

template <bool kClear>
void add_all(const Addition* additions, int64_t additions_count, int64_t at, int64_t count) {
  for (int64_t k = 0; k < additions_count; ++k) {
    float* to = additions[k].to + at;
    float* from = additions[k].from + at;
    for_lanes(count, [=](auto d, int64_t i) HWY_ATTR {
      hn::StoreU(hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i);
      if (kClear) hn::StoreU(hn::Zero(d), d, from + i);
    });
  }
}

void merge_range(const Addition* additions, int64_t additions_count, int64_t at, int64_t count) {
  add_all<false>(additions, additions_count, at, count);
}

void merge_row(const Addition* additions, int64_t additions_count, int64_t at, int64_t count) {
  add_all<true>(additions, additions_count, at, count);
}

}  // namespace
}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/tasks.h"

namespace finetune {
HWY_EXPORT(merge_range);
HWY_EXPORT(merge_row);

namespace {
// elements per arena: pieces of several arenas fit a core's cache
constexpr int64_t kPiece = 1 << 13;
}  // namespace

void CpuBackend::merge(std::span<const Addition> additions, int64_t count) {
  if (additions.empty()) return;
  for (const Addition& a : additions) packed_.written(vector(a.to, count));
  cpu::for_ranges(count, kPiece, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(merge_range)
    (additions.data(), int64_t(additions.size()), begin, end - begin);
  });
}

void CpuBackend::merge_rows(std::span<const Addition> additions, RowList rows, int64_t cols) {
  if (additions.empty()) return;
  cpu::for_ranges(rows.count, cpu::row_grain(cols), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      HWY_DYNAMIC_DISPATCH(merge_row)
      (additions.data(), int64_t(additions.size()), rows.rows[i] * cols, cols);
    }
  });
}

}  // namespace finetune
#endif
