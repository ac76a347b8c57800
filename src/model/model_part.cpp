// Answers questions about the part of a model that a process holds.
#include "model/model_part.h"

#include <algorithm>

namespace finetune {

ModelPart ModelPart::whole(const EncoderConfig& config, int64_t tensor_shards) {
  ModelPart part;
  part.chunks = {{0, config.num_hidden_layers}};
  part.tensor_shards = tensor_shards;
  part.shards = {0, tensor_shards};
  return part;
}

bool ModelPart::is_whole(const EncoderConfig& config) const {
  return embeddings && head && shards.size() == tensor_shards &&
         layers() == config.num_hidden_layers;
}

bool ModelPart::holds_layer(int64_t layer) const {
  return std::any_of(chunks.begin(), chunks.end(),
                     [&](IndexRange chunk) { return chunk.contains(layer); });
}

int64_t ModelPart::layers() const {
  int64_t count = 0;
  for (IndexRange chunk : chunks) count += chunk.size();
  return count;
}

}  // namespace finetune
