// An operand of a matrix product as tiles: their layout, and packing. It covers some of a
// matrix's lines and some of its depth.
#pragma once

#include <cstring>

#include "core/numeric/tensor.h"
#include "ops/cpu/bf16_tiles/tiles.h"

namespace finetune::cpu {

// Lines [begin, begin + count) of one operand (rows of op(a), columns of op(b)) as tiles: an even
// number of groups of 16 lines, each of `tiles` tiles of depth from tile `first` on.
struct Packed {
  int64_t begin, count, first, tiles;
  uint16_t* data;
  int64_t groups() const { return round_up(count, kTileBlock) / kTileSide; }
  int64_t floats() const { return groups() * tiles * kTileSize / 2; }
};

// Layout of a left operand: [group][tile]. Of a right operand: [panel of two groups][tile][half],
// in the order of reading.
inline uint16_t* left_tile(const Packed& packed, int64_t group, int64_t d) {
  return packed.data + (group * packed.tiles + d) * kTileSize;
}
inline uint16_t* panel_tile(const Packed& packed, int64_t group, int64_t d) {
  return packed.data + ((group / 2 * packed.tiles + d) * 2 + group % 2) * kTileSize;
}

// Rows of op(a) for a product. bf16 rows that are whole lines of memory are used in place as tiles;
// only the last rows, which do not fill a block, are packed.
struct Left {
  Packed packed;                   // lines from `in_place` on
  const bfloat16* rows = nullptr;  // of the lines before `in_place`
  int64_t stride = 0, in_place = 0;

  int64_t begin() const { return packed.begin - in_place; }
  int64_t count() const { return in_place + packed.count; }
  int64_t tiles() const { return packed.tiles; }
  const uint16_t* block(int64_t line, int64_t tile) const {
    if (line >= in_place) return left_tile(packed, (line - in_place) / kTileSide, tile);
    return reinterpret_cast<const uint16_t*>(rows + line * stride + tile * kTileDepth);
  }
  TileLayout layout(int64_t line) const {
    if (line >= in_place) return {packed.tiles * kTileSize, kTileSize};
    return {kTileSide * stride, kTileDepth, size_t(stride) * sizeof(bfloat16)};
  }
};

// Lines [begin, begin + count) of x (lines, depth); tiles cover the whole depth.
inline Left left_of(Tensor x, int64_t begin, int64_t count, int64_t tiles) {
  Left left{{begin, count, 0, tiles, nullptr}};
  const bool as_they_lie = x.dtype == DType::bf16 && x.cols % kTileDepth == 0 &&
                           x.stride % kTileDepth == 0 &&
                           reinterpret_cast<uintptr_t>(x.data) % 64 == 0;
  if (!as_they_lie) return left;
  left.rows = x.as<bfloat16>() + begin * x.stride;
  left.stride = x.stride;
  left.in_place = count / kTileBlock * kTileBlock;
  left.packed.begin += left.in_place;
  left.packed.count -= left.in_place;
  return left;
}

// Columns of op(b) for a product, panel by panel.
struct Right {
  const uint16_t* data;
  int64_t panel_step, tile_step;  // elements
  int64_t begin, count;           // columns

  PanelTiles at(int64_t panel, int64_t tile) const {
    return {data + panel * panel_step + tile * tile_step, tile_step};
  }
  int64_t panels() const { return (count + kTileBlock - 1) / kTileBlock; }
};

inline Right right_of(const Packed& packed) {
  return {packed.data, packed.tiles * 2 * kTileSize, 2 * kTileSize, packed.begin, packed.count};
}

// Packs one group of an operand whose lines are memory rows: x (lines, depth).
template <bool kTranspose, typename T, typename Place>
void pack_group_of(Tensor x, const Packed& packed, int64_t group, const Place& place) {
  const int64_t line = group * kTileSide, k = packed.first * kTileDepth;
  const int64_t depth = std::min(packed.tiles * kTileDepth, x.cols - k);
  const T* from = x.as<T>() + (packed.begin + line) * x.stride + k;
  int64_t whole = 0;  // full tiles
  if constexpr (kTranspose) {
    if (line + kTileSide <= packed.count) {
      for (; (whole + 1) * kTileDepth <= depth; ++whole) {
        pack_transposed(from + whole * kTileDepth, x.stride, place(packed, group, whole));
      }
    }
  }
  if (whole == packed.tiles) return;
  for (int64_t r = 0; r < kTileSide; ++r) {
    const T* row = line + r < packed.count ? from + r * x.stride + whole * kTileDepth : nullptr;
    pack_along(row, depth - whole * kTileDepth, r,
               [&](int64_t d) { return place(packed, group, whole + d); });
  }
  if (!kTranspose) return;
  for (; whole < packed.tiles; ++whole) transpose_tile(place(packed, group, whole));
}

template <bool kTranspose, typename Place>
void pack_group_along(Tensor x, const Packed& packed, int64_t group, const Place& place) {
  x.dtype == DType::bf16 ? pack_group_of<kTranspose, bfloat16>(x, packed, group, place)
                         : pack_group_of<kTranspose, float>(x, packed, group, place);
}

// Packs one tile of depth of an operand whose lines are memory columns: x (depth, lines).
template <bool kTranspose, typename T, typename Place>
void pack_tile_of(Tensor x, const Packed& packed, int64_t d, const Place& place) {
  for (int64_t r = 0; r < kTileSide; ++r) {
    const auto row = [&](int64_t k) {
      return k < x.rows ? x.as<T>() + k * x.stride + packed.begin : nullptr;
    };
    const int64_t k = (packed.first + d) * kTileDepth + 2 * r;
    pack_across(row(k), row(k + 1), packed.count, r, 8 * x.stride,
                [&](int64_t group) { return place(packed, group, d); });
  }
  for (int64_t group = (packed.count + kTileSide - 1) / kTileSide; group < packed.groups();
       ++group) {
    std::memset(place(packed, group, d), 0, kTileSize * sizeof(uint16_t));
  }
  if (!kTranspose) return;
  for (int64_t group = 0; group < packed.groups(); ++group) {
    transpose_tile(place(packed, group, d));
  }
}

template <bool kTranspose, typename Place>
void pack_tile_across(Tensor x, const Packed& packed, int64_t d, const Place& place) {
  x.dtype == DType::bf16 ? pack_tile_of<kTranspose, bfloat16>(x, packed, d, place)
                         : pack_tile_of<kTranspose, float>(x, packed, d, place);
}

}  // namespace finetune::cpu
