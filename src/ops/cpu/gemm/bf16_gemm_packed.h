// Weights that are packed as tiles (packed_weights.h), as operands.
#pragma once

#include "ops/cpu/bf16_tiles/tile_panels.h"
#include "ops/cpu/gemm/gemm.h"

namespace finetune::cpu {

// Columns [begin, begin + count) of p's b, `begin` a multiple of 32.
Right packed_right(const Product& p, int64_t begin, int64_t count);

// A part of them, copied. Where groups lie along the depth, tiles of a panel are as far apart as
// memory that has one place in a core's first cache.
void copy_packed(const Product& p, const Packed& right);

}  // namespace finetune::cpu
