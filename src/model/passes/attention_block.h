// The attention block of a layer: projections, attention, output projection. Residual and norm are
// the layer's. Another kind of attention, or positions by rotation or by bias, belongs here.
#pragma once

#include "model/encoder_layer.h"

namespace finetune {

// `shard`: the index among the shards held here.
AttentionShape attention_shape(const LayerPass& pass, size_t shard);

// Copies the first tokens' rows of (T, H) to an offset of the layer, and returns the copy.
Tensor gather_first(const LayerPass& pass, Tensor from, int64_t to);

// Returns the projected context (R, H), summed over tensor shards. `queries`: the R rows of the
// block's input that have queries.
Tensor attention_forward(const LayerPass& pass, float* weights, Tensor queries);

// `branch`: the gradient of the projected context. If wanted, the gradient of the block's input is
// added to `g.gradient`, or written to `g.normed` if the input is a norm of the layer's input
// (LayerPass::norms_input). If only first tokens are computed, it is written to `g.input` in both
// cases.
void attention_backward(const LayerPass& pass, const LayerGradients& g, float* weights,
                        float* arena, Tensor branch, bool input_wanted);

}  // namespace finetune
