// Parts of a model for tests: all stages and tensor ranks of a layout.
#pragma once

#include <vector>

#include "model/model_part.h"

namespace finetune::test {

struct PartLayout {
  int64_t stages = 1, chunks = 1, tensor_ranks = 1, tensor_shards = 1;
};

// Stage by stage, of each the tensor ranks in turn. Chunk c of stage s has run c * stages + s of
// the layers.
inline std::vector<ModelPart> parts_of(const EncoderConfig& config, PartLayout layout) {
  std::vector<ModelPart> parts;
  for (int64_t stage = 0; stage < layout.stages; ++stage) {
    for (int64_t rank = 0; rank < layout.tensor_ranks; ++rank) {
      ModelPart& p = parts.emplace_back();
      for (int64_t chunk = 0; chunk < layout.chunks; ++chunk) {
        p.chunks.push_back(part(config.num_hidden_layers, layout.stages * layout.chunks,
                                chunk * layout.stages + stage));
      }
      p.embeddings = stage == 0;
      p.head = stage + 1 == layout.stages;
      p.tensor_shards = layout.tensor_shards;
      p.shards = part(layout.tensor_shards, layout.tensor_ranks, rank);
    }
  }
  return parts;
}

inline const PartLayout kPartLayouts[] = {{1, 1, 1, 1}, {2, 1, 1, 1}, {3, 1, 1, 1}, {4, 1, 1, 1},
                                          {2, 2, 1, 1}, {1, 1, 1, 2}, {1, 1, 2, 2}, {1, 1, 1, 4},
                                          {1, 1, 2, 4}, {1, 1, 4, 4}, {2, 1, 2, 2}, {2, 2, 2, 4},
                                          {4, 1, 4, 4}, {3, 1, 2, 4}};

}  // namespace finetune::test
