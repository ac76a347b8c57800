// Packs rows of a head as operands of attention's products. Tiles are whole and one after the
// other; rows beyond the end are zero.
#pragma once

#include <cstring>

#include "core/numeric/dtype.h"
#include "ops/cpu/attention/attention.h"
#include "ops/cpu/bf16_tiles/bf16_math.h"
#include "ops/cpu/bf16_tiles/tile_blocks.h"

namespace finetune::cpu {

constexpr float kUnseen = -1e30f;           // score of a key outside of the window
constexpr int64_t kFactorsSlack = 2 * 128;  // dropout draws whole groups of 128

constexpr int64_t kTileBytes = kTileSize * int64_t(sizeof(uint16_t));

// Some rows of one head: (count, size), rows `stride` elements apart.
struct HeadRows {
  const bfloat16* data;
  int64_t stride, count;
  const bfloat16* row(int64_t r) const { return r < count ? data + r * stride : nullptr; }
};

// Prefetches rows of this head and of the following heads of the task, row after row: one
// contiguous run is fast, whereas head by head would touch lines of different pages.
inline void fetch_heads(const HeadRows& x, int64_t width) {
  for (int64_t r = 0; r < x.count; ++r) {
    for (int64_t i = 0; i < width; i += kTileDepth) {
      _mm_prefetch(reinterpret_cast<const char*>(x.row(r) + i), _MM_HINT_T1);
    }
  }
}
inline void fetch_to_write(const HeadRows& x, int64_t size) {
  for (int64_t r = 0; r < x.count; ++r) {
    for (int64_t i = 0; i < size; i += kTileDepth) __builtin_prefetch(x.row(r) + i, 1);
  }
}

// A task's head in matrices of all heads side by side.
struct TaskHead {
  const HeadTask& task;
  int64_t size;

  HeadRows rows(Tensor x, int64_t row, int64_t count) const {
    return {task.at<bfloat16>(x, row, size), x.stride, count};
  }
  HeadRows queries(Tensor x) const { return rows(x, task.first_query, task.queries); }
  HeadRows keys(Tensor x) const { return rows(x, task.first_key, task.keys); }
  // Includes the heads that follow it.
  void fetch(const HeadRows& x) const { fetch_heads(x, task.heads_to_come * size); }
};

// Adds factor * x to y. Both have `count` elements; y is aligned and has whole vectors.
inline void add_times(const float* x, float factor, float* y, int64_t count) {
  const __m512 times = _mm512_set1_ps(factor);
  for (int64_t i = 0; i < count; i += kTileSide) {
    const __m512 from = _mm512_maskz_loadu_ps(lane_mask(count - i), x + i);
    _mm512_store_ps(y + i, _mm512_fmadd_ps(from, times, _mm512_load_ps(y + i)));
  }
}

inline __m512i row_part(const bfloat16* row, int64_t i) {
  return row ? _mm512_loadu_si512(row + i) : _mm512_setzero_si512();
}

// Tiles [16 rows][32 of size]: a left operand whose depth is `size`.
inline void pack_rows_left(const HeadRows& x, int64_t padded, int64_t size, uint16_t* to) {
  for (int64_t r = 0; r < padded; ++r) {
    uint16_t* tile = to + r / kTileSide * size * kTileSide + r % kTileSide * kTileDepth;
    for (int64_t i = 0; i < size; i += kTileDepth, tile += kTileSize) {
      _mm512_store_si512(tile, row_part(x.row(r), i));
    }
  }
}

// Tiles [16 rows][32 of size] as a right operand: the rows become columns, the depth is `size`.
inline void pack_rows_right(const HeadRows& x, int64_t padded, int64_t size, uint16_t* to) {
  for (int64_t r = 0; r < padded; r += kTileSide) {
    for (int64_t i = 0; i < size; i += kTileDepth, to += kTileSize) {
      __m512i rows[16];
#pragma GCC unroll 16
      for (int k = 0; k < 16; ++k) rows[k] = row_part(x.row(r + k), i);
      store_transposed(rows, to);
    }
  }
}

// Tiles [32 rows][16 of size] as a right operand with the rows as depth.
inline void pack_rows_deep(const HeadRows& x, int64_t padded, int64_t size, uint16_t* to) {
  for (int64_t r = 0; r < padded; r += 2) {
    uint16_t* tile = to + r / kTileDepth * size * kTileDepth + r % kTileDepth * kTileSide;
    pack_across(x.row(r), x.row(r + 1), size, 0, 0,
                [&](int64_t group) { return tile + group * kTileSize; });
  }
}

// Tiles [16 of size][32 rows] as a left operand with the rows as depth; memory is [rows][size].
inline void pack_rows_turned(const HeadRows& x, int64_t padded, int64_t size, uint16_t* to) {
  pack_rows_deep(x, padded, size, to);
  const int64_t tiles = padded / kTileDepth * (size / kTileSide);
  for (int64_t i = 0; i < tiles; ++i) transpose_tile(to + i * kTileSize);
}

// The operand packed by pack_rows_left or pack_rows_right, from line `row` on.
inline Operand lines_of(const uint16_t* tiles, int64_t size, int64_t row) {
  return {tiles + row * size, 64, kTileSide * size * 2, kTileBytes};
}
// The operand packed by pack_rows_deep or pack_rows_turned, from line `i` of the size on.
inline Operand deep_of(const uint16_t* tiles, int64_t size, int64_t i) {
  return {tiles + i * kTileDepth, 64, kTileBytes, kTileDepth * size * 2};
}

// to (count rows, size) = sums^T, sums (size, ...) with rows `stride` apart
inline void store_turned(const float* sums, int64_t stride, int64_t count, int64_t size,
                         bfloat16* to, int64_t to_stride) {
  alignas(64) uint16_t turned[kTileSize];  // (16, 16) floats
  for (int64_t first = 0; first < count; first += kTileSide) {
    for (int64_t i = 0; i < size; i += kTileSide) {
      __m512i r[16];
#pragma GCC unroll 16
      for (int k = 0; k < 16; ++k) r[k] = _mm512_load_si512(sums + (i + k) * stride + first);
      store_transposed(r, turned);
      const int64_t rows = std::min(kTileSide, count - first);
      for (int64_t k = 0; k < rows; ++k) {
        const __m512 row = _mm512_load_ps(reinterpret_cast<const float*>(turned) + k * kTileSide);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + (first + k) * to_stride + i),
                            (__m256i)_mm512_cvtneps_pbh(row));
      }
    }
  }
}

}  // namespace finetune::cpu
