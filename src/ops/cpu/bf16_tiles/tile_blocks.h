// Products of small matrices in a core's cache, and the memory of a task for them.
#pragma once

#include "ops/cpu/bf16_tiles/tiles.h"

namespace finetune::cpu {

// c (16 kDown, 16 kAcross), rows `c_stride` apart, = or += a * b over `depth` tiles.
template <int kDown, int kAcross>
void small_block(const Operand& a, const Operand& b, int64_t depth, float* c, int64_t c_stride,
                 bool add) {
  const size_t stride = size_t(c_stride) * sizeof(float);
  float* const lower = c + kTileSide * c_stride;
  before_tile_loads();
  if (add) {
    _tile_loadd(0, c, stride);
    if constexpr (kAcross == 2) _tile_loadd(1, c + kTileSide, stride);
    if constexpr (kDown == 2) _tile_loadd(2, lower, stride);
    if constexpr (kDown == 2 && kAcross == 2) _tile_loadd(3, lower + kTileSide, stride);
  } else {
    _tile_zero(0);
    if constexpr (kAcross == 2) _tile_zero(1);
    if constexpr (kDown == 2) _tile_zero(2);
    if constexpr (kDown == 2 && kAcross == 2) _tile_zero(3);
  }
  for (int64_t d = 0; d < depth; ++d) {
    _tile_loadd(4, a.at(0, d), a.stride);
    _tile_loadd(6, b.at(0, d), b.stride);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kAcross == 2) {
      _tile_loadd(7, b.at(1, d), b.stride);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kDown == 2) {
      _tile_loadd(5, a.at(1, d), a.stride);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (kDown == 2 && kAcross == 2) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, stride);
  if constexpr (kAcross == 2) _tile_stored(1, c + kTileSide, stride);
  if constexpr (kDown == 2) _tile_stored(2, lower, stride);
  if constexpr (kDown == 2 && kAcross == 2) _tile_stored(3, lower + kTileSide, stride);
}

// tall: 32 rows, else 16; wide: 32 columns, else 16
inline void small_block(bool tall, bool wide, const Operand& a, const Operand& b, int64_t depth,
                        float* c, int64_t c_stride, bool add = false) {
  if (!tile_registers) {
    dot_block(tall ? kTileBlock : kTileSide, wide, a, b, depth, c, c_stride, add);
  } else if (tall) {
    wide ? small_block<2, 2>(a, b, depth, c, c_stride, add)
         : small_block<2, 1>(a, b, depth, c, c_stride, add);
  } else {
    wide ? small_block<1, 2>(a, b, depth, c, c_stride, add)
         : small_block<1, 1>(a, b, depth, c, c_stride, add);
  }
}

// Allocates pieces of a task's memory, or only counts their size if there is no memory yet.
struct Pieces {
  float* memory;
  int64_t floats = 0;
  template <typename T>
  T* take(int64_t count) {
    T* piece = memory ? reinterpret_cast<T*>(memory + floats) : nullptr;
    floats += round_up(count * int64_t(sizeof(T)), 64) / int64_t(sizeof(float));
    return piece;
  }
};

}  // namespace finetune::cpu
