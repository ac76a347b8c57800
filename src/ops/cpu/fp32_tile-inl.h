// What products of matrices in fp32 share: a tile of sums in registers, and packing. Packed
// matrices have rows of a multiple of kLanes floats, the rest filled with zeros, so that no kernel
// needs a mask.
#if defined(FINETUNE_CPU_FP32_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FINETUNE_CPU_FP32_TILE_INL_H_
#undef FINETUNE_CPU_FP32_TILE_INL_H_
#else
#define FINETUNE_CPU_FP32_TILE_INL_H_
#endif

#include "ops/cpu/simd-inl.h"
#include "ops/cpu/tasks.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {

// Rows of a tile: with two vectors across, its sums fill the 32 (or 16) registers but four.
constexpr int64_t kTileRows = kLanes == 16 ? 12 : 6;

// A matrix of which a product reads rows: element (i, k) of op(A) is at [i*stride + k], or at
// [k*stride + i] where it is the transpose of what is stored.
struct Left {
  const float* data;
  int64_t stride;
};

// c (kRows, kVectors*kLanes) = or += op(a) (kRows, depth) * b (depth, ...)
template <bool kTranspose, int kRows, int kVectors>
HWY_INLINE void tile(Left a, const float* HWY_RESTRICT b, int64_t ldb, float* HWY_RESTRICT c,
                     int64_t ldc, int64_t depth, bool accumulate) {
  const Floats d;
  hn::Vec<Floats> sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) {
      sum[i][j] = accumulate ? hn::LoadU(d, c + i * ldc + j * kLanes) : hn::Zero(d);
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    hn::Vec<Floats> right[kVectors];
    for (int j = 0; j < kVectors; ++j) right[j] = hn::LoadU(d, b + k * ldb + j * kLanes);
    for (int i = 0; i < kRows; ++i) {
      const auto left =
          hn::Set(d, a.data[kTranspose ? k * a.stride + i : int64_t{i} * a.stride + k]);
      for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) hn::StoreU(sum[i][j], d, c + i * ldc + j * kLanes);
  }
}

// The tile of exactly `rows` rows.
template <bool kTranspose, int kRows, int kVectors>
HWY_INLINE void tile_of(int64_t rows, Left a, const float* b, int64_t ldb, float* c, int64_t ldc,
                        int64_t depth, bool accumulate) {
  if (rows == kRows) return tile<kTranspose, kRows, kVectors>(a, b, ldb, c, ldc, depth, accumulate);
  if constexpr (kRows > 1) {
    tile_of<kTranspose, kRows - 1, kVectors>(rows, a, b, ldb, c, ldc, depth, accumulate);
  }
}

// to (rows, ldt) = from (rows, cols), the rest of each row zero. The `next` columns beside them, of
// the head that comes next, are prefetched, here and below.
template <class T>
inline void pack(const T* from, int64_t stride, int64_t rows, int64_t cols, float* to, int64_t ldt,
                 int64_t next) {
  for (int64_t r = 0; r < rows; ++r) {
    prefetch(from + r * stride + cols, stride, 1, next);
    for_lanes(cols, [&](auto d, int64_t i) HWY_ATTR {
      hn::StoreU(load_as(d, from + r * stride + i), d, to + r * ldt + i);
    });
    for (int64_t i = cols; i < ldt; ++i) to[r * ldt + i] = 0;
  }
}

// to (cols, ldt) = factor * from (rows, cols)^T, the rest of each row zero. Squares of four.
template <class T>
inline void pack_transposed(const T* from, int64_t stride, int64_t rows, int64_t cols, float factor,
                            float* to, int64_t ldt, int64_t next) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<uint64_t, 2> pairs;
  const auto scale = hn::Set(d, factor);
  const auto halves = [&](auto a, auto b, float* low, float* high) HWY_ATTR {
    const auto x = hn::BitCast(pairs, a), y = hn::BitCast(pairs, b);
    hn::StoreU(hn::Mul(hn::BitCast(d, hn::InterleaveLower(x, y)), scale), d, low);
    hn::StoreU(hn::Mul(hn::BitCast(d, hn::InterleaveUpper(pairs, x, y)), scale), d, high);
  };
  const int64_t whole_rows = rows / 4 * 4, whole_cols = cols / 4 * 4;
  for (int64_t r = 0; r < whole_rows; r += 4) {
    prefetch(from + r * stride + cols, stride, 4, next);
    for (int64_t c = 0; c < whole_cols; c += 4) {
      const T* p = from + r * stride + c;
      const auto v0 = load_as(d, p), v1 = load_as(d, p + stride);
      const auto v2 = load_as(d, p + 2 * stride), v3 = load_as(d, p + 3 * stride);
      float* t = to + c * ldt + r;
      halves(hn::InterleaveLower(v0, v1), hn::InterleaveLower(v2, v3), t, t + ldt);
      halves(hn::InterleaveUpper(d, v0, v1), hn::InterleaveUpper(d, v2, v3), t + 2 * ldt,
             t + 3 * ldt);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = r < whole_rows ? whole_cols : 0; c < cols; ++c) {
      to[c * ldt + r] = float(from[r * stride + c]) * factor;
    }
  }
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t r = rows; r < ldt; ++r) to[c * ldt + r] = 0;
  }
}

}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FINETUNE_CPU_FP32_TILE_INL_H_
