// What the blocks of an encoder compute, where the encoders that can be fine-tuned differ. Every
// field is read where its block is computed: model/passes/ends.cpp has embeddings and heads,
// model/encoder_layer.cpp the layers.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/backend.h"

namespace finetune {

struct EmbeddingBlock {
  // Width of the tables and their LayerNorm, whose output a linear layer brings to the hidden size;
  // 0: they have the hidden size, and there is no such layer.
  int64_t narrow_size = 0;
  int64_t first_position = 0;  // row of the position embedding that a text's first token takes
  // A token with this id takes the row before first_position, and the token after it takes the
  // position that it would have had; -1: there is no such id.
  int32_t uncounted_id = -1;
  bool pair_types = true;  // the second text of a pair has type 1; false: every token has type 0
};

// Positions by rotation of queries and keys, and layers that see near tokens alone.
struct RotaryBlock {
  double theta = 0;  // 0: nothing is rotated
  double local_theta = 0;
  int64_t window = -1;      // of local layers: AttentionShape::window
  std::vector<bool> local;  // of each layer; empty: none is local

  bool is_local(int64_t layer) const { return !local.empty() && local[size_t(layer)]; }
};

struct LayerBlock {
  bool attention_output_dropout = true;  // after the projection of attention's output
  bool output_dropout = true;            // after the feed-forward
  bool position_bias = false;            // attention adds PositionBias, the same in all layers
  // Layers share weights in groups (EncoderConfig::weights_layer): each group of neighbouring
  // layers goes through its `inner` sets of weights again and again. 0 groups: none is shared.
  int64_t groups = 0;
  int64_t inner = 1;
  bool attention_dropout_twice = false;  // it has the probability of attention's own dropout
  // Norms are before attention (but for the first layer's) and feed-forward, and after the last
  // layer: layers pass the sum on, not its norm.
  bool norm_before = false;
  bool gated = false;  // the feed-forward block multiplies the activation by a second product
  bool attention_bias = true, inner_bias = true;
  bool norm_bias = true;  // of every LayerNorm of the model

  int64_t norm_vectors() const { return norm_bias ? 2 : 1; }
  bool is_berts() const {
    return !norm_before && !gated && !position_bias && attention_bias && inner_bias && norm_bias;
  }
};

struct HeadBlock {
  bool input_dropout = false;                // before the dense layer on the first token
  Activation activation = Activation::tanh;  // after it
  bool token_dropout = false;                // before the layer on every token
  bool masked_gelu = false;                  // the masked head has exact GELU, not hidden_act
  bool masked_alike = false;                 // the masked head has `activation`
  bool norm = false;                         // LayerNorm after the activation
  bool mean = false;             // a sequence head reads the mean of all tokens, not the first one
  bool dense_on_tokens = false;  // a token head has dense layer, activation and norm, too
  bool dense_bias = true, decoder_bias = true;
};

}  // namespace finetune
