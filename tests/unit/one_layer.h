// A model of one small layer, for tests that inspect its tensors without computing.
#pragma once

#include "model/config.h"

namespace finetune::test {

inline EncoderConfig one_layer_config() {
  EncoderConfig config;
  config.vocab_size = 20;
  config.hidden_size = 8;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 2;
  config.intermediate_size = 16;
  config.max_position_embeddings = 8;
  return config;
}

}  // namespace finetune::test
