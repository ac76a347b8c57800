// Products of bf16 tiles (tile_pack.h) in vector registers, by VDPBF16PS. For processors without
// tile registers. The instruction multiplies pairs of neighbours in depth, which matches the layout
// of tiles, and adds to fp32 sums.
#pragma once

#include "ops/cpu/bf16_tiles/tile_pack.h"

namespace finetune::cpu {

// c (rows, 32 if wide, else 16), rows `c_stride` apart, = or += a * b over `depth` tiles; rows is
// at most 32.
void dot_block(int64_t rows, bool wide, const Operand& a, const Operand& b, int64_t depth, float* c,
               int64_t c_stride, bool add);

// For benchmarks: multiplies bf16 values that stay in registers, on the calling thread; returns the
// number of floating-point operations.
double dot_spin(int64_t rounds);

}  // namespace finetune::cpu
