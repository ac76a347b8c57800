// The two halves of an encoder layer in inference, on tiles (ops/backend.h). A task takes some rows
// through its whole half within a core's second-level cache; the weights, packed in the order of
// their use, stream by. Each row's result depends only on its own sequence, as long as all values
// are finite: NaN and infinity may spread to neighbouring sequences.
#pragma once

#include "ops/backend.h"

namespace finetune::cpu {

bool has_tile_layer(const LayerShape& shape);
void tile_self_attention(const AttentionShape& shape, Tensor x, Tensor first, Tensor weight,
                         Tensor bias, Tensor context);
void tile_layer_output(const LayerOutput& layer, Tensor context, Tensor residual, Tensor y);

}  // namespace finetune::cpu
