// Products of packed rows that stay in a core's cache with packed weights streamed from memory.
#pragma once

#include <algorithm>

#include "ops/cpu/bf16_tiles/tiles.h"

namespace finetune::cpu {

// Tiles along the inner dimension per pass: more would push operands out of the first-level cache;
// fewer would load and store the sums more often.
constexpr int64_t kPartTiles = 12;
// Second-level cache used by a task.
constexpr int64_t kCacheBytes = int64_t{1408} << 10;
constexpr int64_t kPanelTile = 2 * kTileSize;  // elements of a panel's tile of depth

// While one block is multiplied, this share of a panel can be fetched.
constexpr int64_t kFetchesOfPanel = kPanelTile * int64_t(sizeof(uint16_t)) / 256;

// The part of the next panel to fetch while block `i` of a panel part of `depth` tiles is computed;
// null if all is fetched.
inline const char* share_of_next(const uint16_t* panel, int64_t depth, int64_t i) {
  if (i >= kFetchesOfPanel) return nullptr;
  return reinterpret_cast<const char*>(panel + depth * kPanelTile) + i * depth * 256;
}

// c (rows, 32), rows `stride` apart, = or += left (rows, tiles of depth) times a panel of weights.
// c and left need memory for a multiple of 32 rows. left: [16 rows][tile], with `left_tiles` tiles.
// Prefetches the memory behind the panel: the next panel.
inline void multiply_panel(const uint16_t* left, int64_t left_tiles, int64_t rows,
                           const uint16_t* panel, int64_t tiles, float* c, int64_t stride,
                           bool add) {
  for (int64_t part = 0; part < tiles; part += kPartTiles) {
    const int64_t depth = std::min(kPartTiles, tiles - part);
    const uint16_t* right = panel + part * kPanelTile;
    const TileLayout layout{left_tiles * kTileSize, kTileSize};
    for (int64_t row = 0; row < rows; row += kTileBlock) {
      const uint16_t* a = left + (row / kTileSide * left_tiles + part) * kTileSize;
      block_product<Passing::packed_rows>(rows - row, a, layout, right, depth, c + row * stride,
                                          stride, add || part > 0,
                                          share_of_next(right, depth, row / kTileBlock));
    }
  }
}

}  // namespace finetune::cpu
