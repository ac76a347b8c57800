// The feed-forward block of a layer: two products with an activation between, which may be gated.
// Residual and norm are the layer's.
#pragma once

#include "model/encoder_layer.h"

namespace finetune {

// Returns the block's output (R, H) for offsets.middle, summed over tensor shards.
Tensor feed_forward(const LayerPass& pass, float* weights);

// `branch`: the gradient of that output. Adds the gradient of offsets.middle to `gradient`, or
// writes it there if that is `fresh`.
void feed_forward_backward(const LayerPass& pass, const LayerGradients& g, float* weights,
                           float* arena, Tensor branch, Tensor gradient, bool fresh = false);

}  // namespace finetune
