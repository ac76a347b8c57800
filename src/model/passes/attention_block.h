// The attention block of a layer: projections, attention, output projection. Residual and norm are
// the layer's. Another kind of attention, or positions by rotation or by bias, belongs here.
#pragma once

#include "model/encoder_layer.h"

namespace finetune {

// `shard`: number among those held here.
AttentionShape attention_shape(const LayerPass& pass, size_t shard);

// Copies the first tokens' rows of the layer's input, and returns the copy.
Tensor gather_first(const LayerPass& pass, Tensor input);

// Returns the projected context (R, H), summed over tensor shards. `residual`: the R rows of the
// layer's input that make queries.
Tensor attention_forward(const LayerPass& pass, float* weights, Tensor residual);

// `branch`: the gradient of the projected context. Adds the gradient of the layer's input to
// `g.gradient`, or leaves it in `g.input` where only first tokens are computed, if it is wanted.
void attention_backward(const LayerPass& pass, const LayerGradients& g, float* weights,
                        float* arena, Tensor branch, bool input_wanted);

}  // namespace finetune
