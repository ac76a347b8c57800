// What the blocks of an encoder compute, where the encoders that can be fine-tuned differ. Every
// field is read where its block is computed: model/passes/ends.cpp has embeddings and heads,
// model/encoder_layer.cpp the layers.
#pragma once

#include <cstdint>

#include "ops/backend.h"

namespace finetune {

struct EmbeddingBlock {
  int64_t first_position = 0;  // row of the position embedding that a text's first token takes
};

struct LayerBlock {
  bool attention_output_dropout = true;  // after the projection of attention's output
};

struct HeadBlock {
  Activation activation = Activation::tanh;  // after the dense layer on the first token
  bool token_dropout = false;                // before the layer on every token
};

}  // namespace finetune
