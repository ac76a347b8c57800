// Products of bf16 tiles (tile_pack.h): blocks of two by two tiles of sums. They use AMX tile
// registers or, with the same operands, vector registers.
#pragma once

#include <cstdint>

#include "ops/cpu/bf16_tiles/dot_blocks.h"
#include "ops/cpu/bf16_tiles/tile_instructions.h"
#include "ops/cpu/bf16_tiles/tile_pack.h"

namespace finetune::cpu {

constexpr int64_t kTileBlock = 2 * kTileSide;  // rows and columns of a block of sums

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Whether products use tile registers (bf16_gemm.h, use_tile_registers).
inline bool tile_registers = false;

// Configures the tile registers during its lifetime.
class Tiles {
 public:
  Tiles() {
    static constexpr TileConfig config;
    if (tile_registers) _tile_loadconfig(&config);
  }
  ~Tiles() {
    if (tile_registers) _tile_release();
  }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// The layout of the tiles of 32 lines: `half` elements from the first 16 lines to the second,
// `step` from one tile of depth to the next, `line` bytes between lines.
struct TileLayout {
  int64_t half, step;
  size_t line = 64;
};
// both halves of a tile of depth are adjacent
constexpr TileLayout kInPanel{kTileSize, 2 * kTileSize};

// A panel of 32 columns from some tile of depth on: both halves are adjacent, tiles are `step`
// elements apart.
struct PanelTiles {
  const uint16_t* data;
  int64_t step;

  PanelTiles(const uint16_t* tiles, int64_t step_ = 2 * kTileSize) : data(tiles), step(step_) {}
};

// Prefetches half a tile into the first-level cache. When threads share a core, tiles are loaded
// only just before they are multiplied, so a cache miss stalls.
inline void fetch_half_tile(const uint16_t* half) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    _mm_prefetch(reinterpret_cast<const char*>(half + i * 32), _MM_HINT_T0);
  }
}

// The operand that changes with the next product: it is fetched from the second-level cache during
// multiplication; the other operand stays in the first-level cache.
enum class Passing { panels, packed_rows };

// c (32, 32), rows `c_stride` apart, = or += the product of `depth` tiles of a's 32 rows and b's
// panel. With kFetch, prefetches four lines of memory per tile of depth from `ahead` on into the
// second-level cache.
template <Passing kPassing, bool kFetch>
inline void block_product_of(const uint16_t* a, TileLayout layout, PanelTiles b, int64_t depth,
                             float* c, int64_t c_stride, bool add, const char* ahead) {
  const size_t stride = size_t(c_stride) * sizeof(float);
  float* lower = c + kTileSide * c_stride;
  before_tile_loads();
  if (add) {
    _tile_loadd(0, c, stride);
    _tile_loadd(1, c + kTileSide, stride);
    _tile_loadd(2, lower, stride);
    _tile_loadd(3, lower + kTileSide, stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  constexpr bool kRows = kPassing == Passing::packed_rows;
  const int64_t half = kRows ? layout.half : kTileSize;
  for (int64_t d = 0; d < depth; ++d) {
    const uint16_t* const next = kRows ? a + layout.step : b.data + b.step;
    _tile_loadd(6, b.data, 64);
    _tile_loadd(4, a, layout.line);
    _tile_dpbf16ps(0, 4, 6);
    fetch_half_tile(next);
    if constexpr (kFetch) _mm_prefetch(ahead, _MM_HINT_T1);
    _tile_loadd(7, b.data + kTileSize, 64);
    _tile_dpbf16ps(1, 4, 7);
    fetch_half_tile(next + kTileSize / 2);
    if constexpr (kFetch) _mm_prefetch(ahead + 64, _MM_HINT_T1);
    _tile_loadd(5, a + layout.half, layout.line);
    _tile_dpbf16ps(2, 5, 6);
    fetch_half_tile(next + half);
    if constexpr (kFetch) _mm_prefetch(ahead + 128, _MM_HINT_T1);
    _tile_dpbf16ps(3, 5, 7);
    fetch_half_tile(next + half + kTileSize / 2);
    if constexpr (kFetch) {
      _mm_prefetch(ahead + 192, _MM_HINT_T1);
      ahead += 256;
    }
    a += layout.step;
    b.data += b.step;
  }
  _tile_stored(0, c, stride);
  _tile_stored(1, c + kTileSide, stride);
  _tile_stored(2, lower, stride);
  _tile_stored(3, lower + kTileSide, stride);
}

// The same for the first `rows` rows only; if `ahead` is null nothing is prefetched.
template <Passing kPassing>
inline void block_product(int64_t rows, const uint16_t* a, TileLayout layout, PanelTiles b,
                          int64_t depth, float* c, int64_t c_stride, bool add,
                          const char* ahead = nullptr) {
  if (!tile_registers) {
    constexpr int64_t kBytes = sizeof(uint16_t);
    dot_block(std::min(rows, kTileBlock), true,
              {a, layout.line, layout.half * kBytes, layout.step * kBytes},
              {b.data, 64, kTileSize * kBytes, b.step * kBytes}, depth, c, c_stride, add);
  } else if (ahead != nullptr) {
    block_product_of<kPassing, true>(a, layout, b, depth, c, c_stride, add, ahead);
  } else {
    block_product_of<kPassing, false>(a, layout, b, depth, c, c_stride, add, nullptr);
  }
}

}  // namespace finetune::cpu
