// Packed weights (packed_weights.h) as operands of products.
#pragma once

#include "ops/cpu/bf16_tiles/tile_panels.h"
#include "ops/cpu/gemm/gemm.h"

namespace finetune::cpu {

// Columns [begin, begin + count) of p's b, `begin` a multiple of 32.
Right packed_right(const Product& p, int64_t begin, int64_t count);

// Copies the part that `right` names. If groups follow the depth, a panel's tiles are so far apart
// that they collide in one set of a core's first-level cache.
void copy_packed(const Product& p, const Packed& right);

}  // namespace finetune::cpu
