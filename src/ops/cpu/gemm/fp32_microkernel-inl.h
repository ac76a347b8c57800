// The fp32 microkernel, a tile of sums in registers, and packing: for products and attention. Rows
// of packed matrices are padded with zeros to a multiple of kLanes floats, so that no kernel needs
// a mask.
#if defined(FINETUNE_CPU_FP32_MICROKERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FINETUNE_CPU_FP32_MICROKERNEL_INL_H_
#undef FINETUNE_CPU_FP32_MICROKERNEL_INL_H_
#else
#define FINETUNE_CPU_FP32_MICROKERNEL_INL_H_
#endif

#include <cstring>
#include <type_traits>

#include "ops/cpu/simd-inl.h"
#include "ops/cpu/tasks.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {

// Rows of an attention tile: with two vectors across, sums fill all but four of the 32 (or 16)
// registers.
constexpr int64_t kTileRows = kLanes == 16 ? 12 : 6;

// The left operand: element (i, k) of op(A) is at [i*stride + k] or, if transposed, at [k*stride +
// i].
struct Left {
  const float* data;
  int64_t stride;
};

// The operand that a tile reads unpacked from memory and packs on the way: rows of b, or rows of a
// transposed a.
enum class PackedByTile { none, left, right };

// How many depth steps ahead it is prefetched.
constexpr int64_t kDepthAhead = 20;

// c (kRows, kVectors*kLanes) = or += op(a) (kRows, depth) * b (depth, ...), then bias unless null.
// The operand to pack is written to `packed`, one depth step after the other.
template <bool kTranspose, int kRows, int kVectors, PackedByTile kPacked = PackedByTile::none>
HWY_INLINE void tile(Left a, const float* HWY_RESTRICT b, int64_t ldb, float* HWY_RESTRICT c,
                     int64_t ldc, int64_t depth, bool accumulate,
                     const float* HWY_RESTRICT bias = nullptr,
                     float* HWY_RESTRICT packed = nullptr) {
  constexpr int kCols = kVectors * kLanes;
  static_assert(kPacked != PackedByTile::left || kTranspose);
  const Floats d;
  hn::Vec<Floats> sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) {
      sum[i][j] = accumulate ? hn::LoadU(d, c + i * ldc + j * kLanes) : hn::Zero(d);
    }
  }
  // Unrolled by four: if two threads share a core's decoder, each instruction counts.
#pragma GCC unroll 4
  for (int64_t k = 0; k < depth; ++k) {
    hn::Vec<Floats> right[kVectors];
    for (int j = 0; j < kVectors; ++j) right[j] = hn::LoadU(d, b + k * ldb + j * kLanes);
    if constexpr (kPacked == PackedByTile::right) {
      prefetch(b + (k + kDepthAhead) * ldb, 0, 1, kCols);
      for (int j = 0; j < kVectors; ++j) hn::StoreU(right[j], d, packed + k * kCols + j * kLanes);
    }
    if constexpr (kPacked == PackedByTile::left) {
      hwy::Prefetch(a.data + (k + kDepthAhead) * a.stride);
      std::memcpy(packed + k * kRows, a.data + k * a.stride, kRows * sizeof(float));
    }
    for (int i = 0; i < kRows; ++i) {
      const auto left =
          hn::Set(d, a.data[kTranspose ? k * a.stride + i : int64_t{i} * a.stride + k]);
      for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
    }
  }
  for (int j = 0; bias && j < kVectors; ++j) {
    const auto v = hn::LoadU(d, bias + j * kLanes);
    for (int i = 0; i < kRows; ++i) sum[i][j] = hn::Add(sum[i][j], v);
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) hn::StoreU(sum[i][j], d, c + i * ldc + j * kLanes);
  }
}

// The tile with exactly `rows` rows.
template <bool kTranspose, int kRows, int kVectors>
HWY_INLINE void tile_of(int64_t rows, Left a, const float* b, int64_t ldb, float* c, int64_t ldc,
                        int64_t depth, bool accumulate, const float* bias = nullptr) {
  if (rows == kRows) {
    return tile<kTranspose, kRows, kVectors>(a, b, ldb, c, ldc, depth, accumulate, bias);
  }
  if constexpr (kRows > 1) {
    tile_of<kTranspose, kRows - 1, kVectors>(rows, a, b, ldb, c, ldc, depth, accumulate, bias);
  }
}

// to (rows, ldt) = from (rows, cols), the rest of each row zero. Here and below, the `next` columns
// (of the next head) are prefetched.
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

// Four floats of every fourth row from `first` on: a vector of kPieces times 128 bits.
template <int64_t kPieces, class RowAt>
HWY_INLINE auto every_fourth(const RowAt& row_at, int64_t first) {
  if constexpr (kPieces == 1) {
    return load_as(hn::FixedTag<float, 4>(), row_at(first));
  } else {
    const hn::FixedTag<float, 4 * kPieces> d;
    return hn::Combine(d, every_fourth<kPieces / 2>(row_at, first + kPieces / 2 * 4),
                       every_fourth<kPieces / 2>(row_at, first));
  }
}

// to (4, 4*kPieces) = factor * the transpose of four columns of 4*kPieces rows, which begin at
// row_at(0), row_at(1), ...
template <int64_t kPieces, class RowAt>
HWY_INLINE void transpose_block(const RowAt& row_at, float factor, float* to, int64_t ldt) {
  const hn::FixedTag<float, 4 * kPieces> d;
  const hn::FixedTag<uint64_t, 2 * kPieces> pairs;
  const auto scale = hn::Set(d, factor);
  const auto v0 = every_fourth<kPieces>(row_at, 0), v1 = every_fourth<kPieces>(row_at, 1);
  const auto v2 = every_fourth<kPieces>(row_at, 2), v3 = every_fourth<kPieces>(row_at, 3);
  const auto halves = [&](auto a, auto b, float* low, float* high) HWY_ATTR {
    const auto x = hn::BitCast(pairs, a), y = hn::BitCast(pairs, b);
    hn::StoreU(hn::Mul(hn::BitCast(d, hn::InterleaveLower(x, y)), scale), d, low);
    hn::StoreU(hn::Mul(hn::BitCast(d, hn::InterleaveUpper(pairs, x, y)), scale), d, high);
  };
  halves(hn::InterleaveLower(v0, v1), hn::InterleaveLower(v2, v3), to, to + ldt);
  halves(hn::InterleaveUpper(d, v0, v1), hn::InterleaveUpper(d, v2, v3), to + 2 * ldt,
         to + 3 * ldt);
}

// to (cols, ldt) = factor * from (rows, cols)^T, the rest of each row zero. Works in strips of as
// many rows as a vector has lanes, so that whole lines of memory are written, then in smaller
// strips; rows missing in the last one are read as zeros.
template <class T>
inline void pack_transposed(const T* from, int64_t stride, int64_t rows, int64_t cols, float factor,
                            float* to, int64_t ldt, int64_t next) {
  static constexpr T kZeros[4] = {};
  const int64_t whole_cols = cols / 4 * 4;
  int64_t r = 0;
  const auto strips = [&](auto pieces) HWY_ATTR {
    constexpr int64_t kPieces = decltype(pieces)::value, kRows = 4 * kPieces;
    for (; r < rows && r + kRows <= ldt; r += kRows) {
      const T* const strip = from + r * stride;
      const int64_t count = HWY_MIN(kRows, rows - r);
      prefetch(strip + cols, stride, count, next);
      for (int64_t c = 0; c < whole_cols; c += 4) {
        const auto row = [=](int64_t i) { return strip + i * stride + c; };
        float* const place = to + c * ldt + r;
        if (count == kRows) {
          transpose_block<kPieces>(row, factor, place, ldt);
        } else {
          transpose_block<kPieces>([=](int64_t i) { return i < count ? row(i) : kZeros; }, factor,
                                   place, ldt);
        }
      }
    }
  };
  strips(std::integral_constant<int64_t, kLanes / 4>());
  if constexpr (kLanes == 16) strips(std::integral_constant<int64_t, 2>());
  strips(std::integral_constant<int64_t, 1>());
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t i = c < whole_cols ? r : 0; i < ldt; ++i) {
      to[c * ldt + i] = i < rows ? float(from[i * stride + c]) * factor : 0.0f;
    }
  }
}

}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FINETUNE_CPU_FP32_MICROKERNEL_INL_H_
