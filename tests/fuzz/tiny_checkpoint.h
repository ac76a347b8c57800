// The smallest model whose checkpoints can be read.
#pragma once

#include <vector>

#include "model/parameters.h"
#include "train/checkpoint/checkpoint.h"

namespace finetune::fuzz {

inline EncoderConfig least_config() {
  EncoderConfig config;
  config.vocab_size = 3;
  config.hidden_size = 2;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 1;
  config.intermediate_size = 2;
  config.max_position_embeddings = 2;
  config.type_vocab_size = 1;
  return config;
}

struct TinyModel {
  ParameterTable table{least_config(), Head{HeadKind::sequence, 2}};
  std::vector<float> weights = std::vector<float>(size_t(table.size())), m = weights, v = weights;

  CheckpointArenas arenas() { return {weights.data(), m.data(), v.data()}; }
};

}  // namespace finetune::fuzz
