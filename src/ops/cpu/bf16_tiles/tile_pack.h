// Packs fp32 matrices, rounded to bf16 (nearest even), and bf16 ones into AMX tiles. Needs AVX-512
// with BF16.
//
// A tile has 16 rows of 16 pairs of bf16. A row of the left operand's tile is a row of the matrix,
// 32 deep. A row of the right operand's tile holds pairs of neighbours in depth, one for each of 16
// columns of the product. Memory is read row by row from end to end, since only long runs are fast.
// If memory rows are across the operand's lines, tiles come out transposed and are then transposed
// in place, with pairs kept together.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/numeric/dtype.h"
#include "ops/cpu/tasks.h"

namespace finetune::cpu {

constexpr int64_t kTileSide = 16;
constexpr int64_t kTileDepth = 32;
constexpr int64_t kTileSize = kTileSide * kTileDepth;  // elements

// Where the tiles of 32 lines of an operand are.
struct Operand {
  const void* data;
  size_t stride;       // bytes between rows of a tile
  int64_t half, step;  // bytes to the second 16 lines, and to the next tile of depth
  const char* at(int64_t half_, int64_t tile) const {
    return static_cast<const char*>(data) + half_ * half + tile * step;
  }
};

inline __mmask16 lane_mask(int64_t count) {
  return __mmask16(count >= 16 ? 0xFFFF : count <= 0 ? 0 : (1u << count) - 1);
}

inline __m512i round_to_bf16(__m512 low, __m512 high) {
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

// tile = the transpose of the rows r, (16, 16) of 32 bits; r is overwritten
inline void store_transposed(__m512i* r, uint16_t* tile) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xDD);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xDD);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xDD);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xDD);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm512_store_si512(tile + 32 * i, r[i]);
}

inline void transpose_tile(uint16_t* tile) {
  __m512i r[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = _mm512_load_si512(tile + 32 * i);
  store_transposed(r, tile);
}

// Packs 16 rows of memory, floats or bf16, `stride` apart and 32 deep, as a transposed tile.
// Prefetches the next 16 rows, which are packed next.
template <typename T>
inline void pack_transposed(const T* from, int64_t stride, uint16_t* tile) {
  __m512i r[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    const T* row = from + i * stride;
    _mm_prefetch(reinterpret_cast<const char*>(row + 16 * stride), _MM_HINT_T0);
    if constexpr (std::is_same_v<T, float>) {
      _mm_prefetch(reinterpret_cast<const char*>(row + 16 * stride + 16), _MM_HINT_T0);
      r[i] = round_to_bf16(_mm512_loadu_ps(row), _mm512_loadu_ps(row + 16));
    } else {
      r[i] = _mm512_loadu_si512(row);
    }
  }
  store_transposed(r, tile);
}

// Packs one row of memory of length `depth` into row `row` of the tiles place(0), place(1), ...; a
// null `from` means zeros. Prefetches kAhead elements ahead.
template <typename Place>
inline void pack_along(const float* from, int64_t depth, int64_t row, const Place& place) {
  for (int64_t k = 0, d = 0; k < depth; k += kTileDepth, ++d) {
    if (from != nullptr) {
      _mm_prefetch(reinterpret_cast<const char*>(from + k + kAhead), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(from + k + kAhead + 16), _MM_HINT_T0);
    }
    const __mmask16 low = from ? lane_mask(depth - k) : 0;
    const __mmask16 high = from ? lane_mask(depth - k - 16) : 0;
    _mm512_store_si512(place(d) + 32 * row,
                       round_to_bf16(_mm512_maskz_loadu_ps(low, from + k),
                                     _mm512_maskz_loadu_ps(high, from + k + 16)));
  }
}

// The same from bf16, without rounding.
template <typename Place>
inline void pack_along(const bfloat16* from, int64_t depth, int64_t row, const Place& place) {
  for (int64_t k = 0, d = 0; k < depth; k += kTileDepth, ++d) {
    if (from != nullptr) {
      _mm_prefetch(reinterpret_cast<const char*>(from + k + kAhead), _MM_HINT_T0);
    }
    const int64_t count = from == nullptr ? 0 : std::min(depth - k, kTileDepth);
    const auto mask = __mmask32((uint64_t{1} << count) - 1);
    _mm512_store_si512(place(d) + 32 * row, _mm512_maskz_loadu_epi16(mask, from + k));
  }
}

// Interleaves words: word 0 of both, word 1 of both, ...: pairs of neighbours in depth.
inline __m512i bf16_pairs(__m512 even, __m512 odd) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, round_to_bf16(even, odd));
}

// Packs two neighbours in depth, `count` columns each, as row `row` of the tiles place(0),
// place(1), ... of 16 columns; a null pointer means zeros. Prefetches `ahead` elements
// ahead.
template <typename Place>
inline void pack_across(const float* even, const float* odd, int64_t count, int64_t row,
                        int64_t ahead, const Place& place) {
  for (int64_t i = 0, g = 0; i < count; i += kTileSide, ++g) {
    const __mmask16 mask = lane_mask(count - i);
    _mm_prefetch(reinterpret_cast<const char*>(even + i + ahead), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(odd + i + ahead), _MM_HINT_T0);
    const __m512i both = bf16_pairs(_mm512_maskz_loadu_ps(even ? mask : __mmask16(0), even + i),
                                    _mm512_maskz_loadu_ps(odd ? mask : __mmask16(0), odd + i));
    _mm512_store_si512(place(g) + 32 * row, both);
  }
}

// The same from bf16.
template <typename Place>
inline void pack_across(const bfloat16* even, const bfloat16* odd, int64_t count, int64_t row,
                        int64_t ahead, const Place& place) {
  const auto load = [count](const bfloat16* from, int64_t i) {
    const int64_t left = from == nullptr ? 0 : std::min(count - i, kTileDepth);
    return _mm512_maskz_loadu_epi16(__mmask32((uint64_t{1} << left) - 1), from + i);
  };
  // Words of pairs 0 to 15, and of 16 to 31: word i of the second source has number 32 + i.
  alignas(64) static constexpr uint16_t low[32] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
                                                   37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
                                                   11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m512i first = _mm512_load_si512(low);
  const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
  for (int64_t i = 0, g = 0; i < count; i += kTileDepth, g += 2) {
    _mm_prefetch(reinterpret_cast<const char*>(even + i + ahead), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(odd + i + ahead), _MM_HINT_T0);
    const __m512i a = load(even, i), b = load(odd, i);
    _mm512_store_si512(place(g) + 32 * row, _mm512_permutex2var_epi16(a, first, b));
    if (i + kTileSide < count) {
      _mm512_store_si512(place(g + 1) + 32 * row, _mm512_permutex2var_epi16(a, second, b));
    }
  }
}

}  // namespace finetune::cpu
