// The tile registers of AMX and the products that they form: blocks of two by two tiles of sums.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "ops/cpu/amx_pack.h"

namespace finetune::cpu {

constexpr int64_t kAmxBlock = 2 * kAmxSide;  // rows and columns of a block of sums

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

class Tiles {
 public:
  Tiles() {
    static constexpr TileConfig config;
    _tile_loadconfig(&config);
  }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// Where the tiles of 32 lines of an operand lie: `half` elements from the first 16 lines' to the
// second's, `step` from one tile of depth to the next, `line` bytes from one line to the next.
struct TileLayout {
  int64_t half, step;
  size_t line = 64;
};
constexpr TileLayout kInPanel{kAmxTile, 2 * kAmxTile};  // both halves of a tile of depth together

// c (32, 32), rows `c_stride` apart, = or += the product of `depth` tiles of a's 32 rows and of b's
// panel. With kFetch four lines of memory a tile of depth are fetched from `ahead` on, into the
// second-level cache.
template <bool kFetch>
inline void block_product_of(const uint16_t* a, TileLayout layout, const uint16_t* b, int64_t depth,
                             float* c, int64_t c_stride, bool add, const char* ahead) {
  const size_t stride = size_t(c_stride) * sizeof(float);
  float* lower = c + kAmxSide * c_stride;
  if (add) {
    _tile_loadd(0, c, stride);
    _tile_loadd(1, c + kAmxSide, stride);
    _tile_loadd(2, lower, stride);
    _tile_loadd(3, lower + kAmxSide, stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t d = 0; d < depth; ++d) {
    _tile_loadd(6, b, 64);
    _tile_loadd(4, a, layout.line);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kFetch) _mm_prefetch(ahead, _MM_HINT_T1);
    _tile_loadd(7, b + kAmxTile, 64);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (kFetch) _mm_prefetch(ahead + 64, _MM_HINT_T1);
    _tile_loadd(5, a + layout.half, layout.line);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (kFetch) _mm_prefetch(ahead + 128, _MM_HINT_T1);
    _tile_dpbf16ps(3, 5, 7);
    if constexpr (kFetch) {
      _mm_prefetch(ahead + 192, _MM_HINT_T1);
      ahead += 256;
    }
    a += layout.step;
    b += 2 * kAmxTile;
  }
  _tile_stored(0, c, stride);
  _tile_stored(1, c + kAmxSide, stride);
  _tile_stored(2, lower, stride);
  _tile_stored(3, lower + kAmxSide, stride);
}

// The same; null: nothing is fetched.
inline void block_product(const uint16_t* a, TileLayout layout, const uint16_t* b, int64_t depth,
                          float* c, int64_t c_stride, bool add, const char* ahead = nullptr) {
  if (ahead != nullptr) {
    block_product_of<true>(a, layout, b, depth, c, c_stride, add, ahead);
  } else {
    block_product_of<false>(a, layout, b, depth, c, c_stride, add, nullptr);
  }
}

}  // namespace finetune::cpu
