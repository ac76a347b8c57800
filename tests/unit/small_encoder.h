// Encoders of a few sizes, for tests.
#pragma once

#include "model/config.h"

namespace finetune::test {

struct EncoderSizes {
  int64_t words, hidden, layers, heads, inner, positions;
};

inline EncoderConfig encoder_of(const EncoderSizes& sizes) {
  EncoderConfig config;
  config.vocab_size = sizes.words;
  config.hidden_size = sizes.hidden;
  config.num_hidden_layers = sizes.layers;
  config.num_attention_heads = sizes.heads;
  config.intermediate_size = sizes.inner;
  config.max_position_embeddings = sizes.positions;
  return config;
}

// For tests that inspect a model's tensors without computing.
inline EncoderConfig one_layer_config() {
  return encoder_of(
      {.words = 20, .hidden = 8, .layers = 1, .heads = 2, .inner = 16, .positions = 8});
}

}  // namespace finetune::test
