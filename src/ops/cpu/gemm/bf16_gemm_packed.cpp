// Packs weights into tiles, and reads packed weights as the right operand.
#include "ops/cpu/gemm/bf16_gemm_packed.h"

#include "ops/cpu/gemm/packed_weights.h"

namespace finetune::cpu {

static_assert(PackedWeights::kGroup == kTileBlock && PackedWeights::kGroup == kTileDepth);

void pack_weight_group(const float* w, int64_t cols, uint16_t* group) {
  const int64_t tiles = cols / kTileDepth;
  for (int64_t half = 0; half < 2; ++half) {
    for (int64_t d = 0; d < tiles; ++d) {
      pack_transposed(w + half * kTileSide * cols + d * kTileDepth, cols,
                      group + (2 * d + half) * kTileSize);
    }
  }
  uint16_t* const across = group + tiles * 2 * kTileSize;
  for (int64_t r = 0; r < kTileSide; ++r) {
    pack_across(w + 2 * r * cols, w + (2 * r + 1) * cols, cols, r, 2 * cols,
                [=](int64_t columns) { return across + columns * kTileSize; });
  }
}

// A group holds a panel of w^T, and a tile of depth of each panel of w.
Right packed_right(const Product& p, int64_t begin, int64_t count) {
  const int64_t group = 2 * kTileBlock * p.b.cols;
  if (p.transpose_b)
    return {p.packed_b + begin / kTileBlock * group, group, 2 * kTileSize, begin, count};
  return {p.packed_b + group / 2 + begin * kTileDepth, 2 * kTileSize, group, begin, count};
}

void copy_packed(const Product& p, const Packed& right) {
  const Right packed = packed_right(p, right.begin, right.count);
  for (int64_t d = 0; d < right.tiles; ++d) {
    for (int64_t panel = 0; panel < packed.panels(); ++panel) {
      const uint16_t* from = packed.at(panel, right.first + d).data;
      uint16_t* to = panel_tile(right, 2 * panel, d);
      for (int64_t i = 0; i < 2 * kTileSize; i += 32) {
        _mm_prefetch(reinterpret_cast<const char*>(from + i + packed.tile_step), _MM_HINT_T0);
        _mm512_store_si512(to + i, _mm512_load_si512(from + i));
      }
    }
  }
}

}  // namespace finetune::cpu
