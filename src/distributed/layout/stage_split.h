// Encoder layers cut into pipeline stages, and stages into chunks for the interleaved schedule.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "distributed/layout/layout.h"
#include "model/head.h"
#include "model/model_part.h"

namespace finetune {

// Time of a forward pass of one token, in any unit: only ratios count.
struct LayerCosts {
  double embeddings = 0;
  std::vector<double> layers;  // of each encoder layer, above 0
  double head = 0;

  double total(IndexRange range) const;  // of layers, embeddings and head where they belong to it
};

// Arithmetic of a token in sequences of `length` tokens: matrix products, attention, and what an
// element costs that is only read and added. Under a sequence head the last layer is computed for
// first tokens alone.
LayerCosts layer_costs(const EncoderConfig& config, Head head, int64_t length);

// Cuts layers into `blocks` contiguous runs of at least one layer such that the slowest costs
// least; of those cuts the one with the most even costs; of equal ones, the fewer layers early,
// since early stages hold more micro-batches. Needs as many layers as blocks.
std::vector<IndexRange> split_evenly(const LayerCosts& costs, int64_t blocks);

struct StageSplit {
  std::vector<std::vector<IndexRange>> chunks;  // [stage][chunk]: encoder layers, ascending

  int stages() const { return int(chunks.size()); }
  int chunks_of_a_stage() const { return int(chunks.front().size()); }
  int64_t layers() const;
  int64_t layers(int stage) const;
};

// `words`: "auto", or the layers of each stage, "7,5". With several chunks block b, the b-th run of
// layers from below, is chunk b / stages of stage b % stages. Error(usage), naming the numbers, for
// more stages times chunks than layers, and words that do not fit.
StageSplit split_stages(std::string_view words, int stages, int chunks, const LayerCosts& costs);

// What the tensor rank t of a stage holds: its layers, and its run of the tensor shards, of which
// there are a multiple of `tp`. The first stage has the embeddings, the last one the head.
ModelPart part_of(const StageSplit& split, int stage, int64_t tensor_shards, int tp, int t);
ModelPart part_of(const StageSplit& split, const Layout& layout, int64_t tensor_shards, int rank);

}  // namespace finetune
