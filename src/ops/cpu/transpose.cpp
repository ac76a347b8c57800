#include "ops/cpu/transpose.h"

#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/transpose.cpp"
#include "hwy/foreach_target.h"
#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {
namespace {

constexpr int64_t kSide = 4;  // floats of a vector's 128-bit block

// Of each fourth row, from the first on, four floats: a vector of kLanes / 4 pieces.
template <int64_t kRows>
HWY_INLINE auto every_fourth(const float* from, int64_t stride) {
  const hn::CappedTag<float, kRows> d;
  if constexpr (kRows == kSide) {
    return hn::LoadU(d, from);
  } else {
    return hn::Combine(d, every_fourth<kRows / 2>(from + kRows / 2 * stride, stride),
                       every_fourth<kRows / 2>(from, stride));
  }
}

// to (4, kLanes) = from (kLanes, 4)^T
HWY_INLINE void transpose_block(const float* from, int64_t stride, float* to, int64_t ldt) {
  const Floats d;
  const hn::RepartitionToWide<Floats> pairs;
  const auto v0 = every_fourth<kLanes>(from, stride);
  const auto v1 = every_fourth<kLanes>(from + stride, stride);
  const auto v2 = every_fourth<kLanes>(from + 2 * stride, stride);
  const auto v3 = every_fourth<kLanes>(from + 3 * stride, stride);
  const auto low = [&](auto a, auto b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveLower(hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  const auto high = [&](auto a, auto b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  const auto first = hn::InterleaveLower(v0, v1), second = hn::InterleaveLower(v2, v3);
  const auto third = hn::InterleaveUpper(d, v0, v1), fourth = hn::InterleaveUpper(d, v2, v3);
  hn::StoreU(low(first, second), d, to);
  hn::StoreU(high(first, second), d, to + ldt);
  hn::StoreU(low(third, fourth), d, to + 2 * ldt);
  hn::StoreU(high(third, fourth), d, to + 3 * ldt);
}

void transpose(const float* from, int64_t stride, int64_t rows, int64_t cols, float* to,
               int64_t ldt) {
  const int64_t whole_rows = rows / kLanes * kLanes, whole_cols = cols / kSide * kSide;
  for (int64_t r = 0; r < whole_rows; r += kLanes) {
    for (int64_t c = 0; c < whole_cols; c += kSide) {
      transpose_block(from + r * stride + c, stride, to + c * ldt + r, ldt);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = r < whole_rows ? whole_cols : 0; c < cols; ++c) {
      to[c * ldt + r] = from[r * stride + c];
    }
  }
}

}  // namespace
}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace finetune {
HWY_EXPORT(transpose);

void cpu::transpose(const float* from, int64_t stride, int64_t rows, int64_t cols, float* to,
                    int64_t ldt) {
  HWY_DYNAMIC_DISPATCH(transpose)(from, stride, rows, cols, to, ldt);
}

}  // namespace finetune
#endif
