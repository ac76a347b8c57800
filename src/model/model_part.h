// The part of a model that one process holds: its pipeline stage's layers, its tensor shards.
// V tensor shards divide attention heads and feed-forward columns (V depends on the run, not on the
// machine); a tensor rank holds a contiguous run of them. The whole model is one part, too.
#pragma once

#include <cstdint>
#include <vector>

#include "core/numeric/index_range.h"
#include "model/config.h"

namespace finetune {

struct ModelPart {
  std::vector<IndexRange>
      chunks;                 // encoder layers of each chunk, ascending; one unless interleaved
  bool embeddings = true;     // the first stage's
  bool head = true;           // the last stage's, pooler included
  int64_t tensor_shards = 1;  // V
  IndexRange shards{0, 1};    // the shards that it holds

  static ModelPart whole(const EncoderConfig& config, int64_t tensor_shards = 1);
  bool is_whole(const EncoderConfig& config) const;
  bool holds_layer(int64_t layer) const;  // encoder layer, 0 for the first
  int64_t layers() const;                 // encoder layers in all chunks
  bool shares_layers() const { return shards.size() < tensor_shards; }  // with other processes
};

}  // namespace finetune
