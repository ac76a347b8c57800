// The two halves of an encoder layer in inference on tiles (ops/backend.h). A task takes some
// rows through all of its half, in a core's second-level cache, and the weights, packed in the
// order of their use, come by. Each row's result depends on its own sequence alone, as long as all
// values are finite: what is not may spread to the sequences beside it.
#pragma once

#include "ops/backend.h"

namespace finetune::cpu {

bool has_tile_layer(const LayerShape& shape);
void tile_self_attention(const AttentionShape& shape, Tensor x, Tensor first, Tensor weight,
                         Tensor bias, Tensor context);
void tile_layer_output(const LayerOutput& layer, Tensor context, Tensor residual, Tensor y);

}  // namespace finetune::cpu
