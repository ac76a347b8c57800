// The differences between the blocks of the encoders that can be fine-tuned. Every field is read
// where its block is computed: embeddings and heads in model/passes/ends.cpp, layers in
// model/encoder_layer.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/backend.h"

namespace finetune {

struct EmbeddingBlock {
  // Width of the tables and their LayerNorm. A linear layer projects their output to the hidden
  // size. 0: they have the hidden size, and there is no linear layer.
  int64_t narrow_size = 0;
  int64_t first_position = 0;  // row of the position embedding for a text's first token
  // A token with this id uses the row before first_position and is not counted: the token after it
  // uses the next position. -1: there is no such id.
  int32_t uncounted_id = -1;
  bool pair_types = true;  // the second text of a pair has type 1; false: every token has type 0
  bool positions = true;   // there is a table of positions
};

// Positions by rotation of queries and keys, and local layers, which see near tokens only.
struct RotaryBlock {
  double theta = 0;  // 0: nothing is rotated
  double local_theta = 0;
  int64_t window = -1;      // of local layers: AttentionShape::window
  std::vector<bool> local;  // of each layer; empty: none is local

  bool is_local(int64_t layer) const { return !local.empty() && local[size_t(layer)]; }
};

// Attention with scores by relative position (Backend::pair_scores), from a table that all layers
// share (He et al., DeBERTa, 2021).
struct RelativeBlock {
  int64_t span = 0;      // the table has 2 * span rows, in order of distance; 0: there is none
  int64_t buckets = 0;   // far distances share rows, this many for both signs; 0: each has a row
  int64_t farthest = 0;  // the buckets grow logarithmically up to this distance
  bool of_queries = false, of_keys = false;  // which of the two have scores with the table's rows
  // Layers project the table by weights of their own. false: for scores of queries they use the key
  // weights, for scores of keys the query weights.
  bool own_weights = false;
  bool norm = false;  // of the table

  bool on() const { return span > 0; }
  int64_t rows() const { return 2 * span; }
  int64_t own_projections() const { return own_weights ? of_queries + of_keys : 0; }
  // The row of the distance query - key.
  int64_t row_of(int64_t distance) const;
};

// A convolution of the first layer's input. Its activation is added to that layer's output, and the
// sum is normed.
struct ConvolutionBlock {
  int64_t taps = 0;  // 0: there is none
  Activation activation = Activation::tanh;

  bool on() const { return taps > 0; }
};

struct LayerBlock {
  bool attention_output_dropout = true;  // after the projection of attention's output
  bool output_dropout = true;            // after the feed-forward
  bool position_bias = false;            // attention adds PositionBias, the same in all layers
  int64_t score_terms = 1;               // attention's scores are scaled by their number of terms
  // Layers share weights in groups (EncoderConfig::weights_layer): a group of neighbouring layers
  // repeats its `inner` sets of weights. 0 groups: no weights are shared.
  int64_t groups = 0;
  int64_t inner = 1;
  bool attention_dropout_twice = false;  // attention's output dropout has attention's probability
  // Norms come before attention (except in the first layer), before the feed-forward and after the
  // last layer: layers pass the sum on, not its norm.
  bool norm_before = false;
  bool gated = false;  // the feed-forward block multiplies the activation by a second product
  bool attention_bias = true, inner_bias = true;
  bool norm_bias = true;  // of every LayerNorm of the model

  int64_t norm_vectors() const { return norm_bias ? 2 : 1; }
  bool is_berts() const {
    return !norm_before && !gated && !position_bias && score_terms == 1 && attention_bias &&
           inner_bias && norm_bias;
  }
};

struct HeadBlock {
  bool input_dropout = false;                // before the dense layer on the first token
  Activation activation = Activation::tanh;  // after it
  bool token_dropout = false;                // before the layer on every token
  bool masked_gelu = false;                  // the masked head has exact GELU, not hidden_act
  bool masked_alike = false;                 // the masked head has `activation`
  bool always_tied = false;      // the masked head's decoder, even if tie_word_embeddings is false
  bool norm = false;             // LayerNorm after the activation
  bool mean = false;             // a sequence head reads the mean of all tokens, not the first one
  bool dense_on_tokens = false;  // a token head has dense layer, activation and norm, too
  bool dense_bias = true, decoder_bias = true;
};

}  // namespace finetune
