// Cuts encoder layers into pipeline stages, and stages into chunks for the interleaved schedule.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "distributed/layout/layout.h"
#include "model/head.h"
#include "model/model_part.h"

namespace finetune {

// Time of a token's forward pass, in any unit: only ratios count.
struct LayerCosts {
  double embeddings = 0;
  std::vector<double> layers;  // of each encoder layer, above 0
  double head = 0;
  // Layers of each run that stays in one stage, since its layers share weights; empty: every layer
  // is a run.
  std::vector<int64_t> runs = {};

  double total(IndexRange range) const;  // of layers; embeddings and head included at the ends
};

// Estimates the cost of a token in sequences of `length` tokens: matrix products, attention, and
// reading and adding elements. Under a sequence head the last layer is computed for first tokens
// alone.
LayerCosts layer_costs(const EncoderConfig& config, Head head, int64_t length);

// Cuts layers into `blocks` contiguous runs of at least one layer so that the slowest run costs
// least. Ties go to the most even costs, then to fewer layers in early runs, since early stages
// hold more micro-batches. Needs at least as many layers as blocks.
std::vector<IndexRange> split_evenly(const LayerCosts& costs, int64_t blocks);

struct StageSplit {
  std::vector<std::vector<IndexRange>> chunks;  // [stage][chunk]: encoder layers, ascending

  int stages() const { return int(chunks.size()); }
  int chunks_of_a_stage() const { return int(chunks.front().size()); }
  int64_t layers() const;
  int64_t layers(int stage) const;
};

// `words`: "auto", which cuts between runs (LayerCosts) if they suffice, or the number of layers of
// each stage, "7,5". With several chunks, block b (the b-th run of layers from the bottom) is chunk
// b / stages of stage b % stages. Error(usage) with the numbers if there are fewer layers than
// stages times chunks, or the words do not fit.
StageSplit split_stages(std::string_view words, int stages, int chunks, const LayerCosts& costs);

// Error(usage) if layers of different chunks share weights: each chunk sums its own gradients.
void require_own_weights(const StageSplit& split, const EncoderConfig& config);
bool has_own_weights(const StageSplit& split, const EncoderConfig& config);

// The part of tensor rank t of a stage: its layers and its run of the tensor shards, whose number
// is a multiple of `tp`. The first stage has the embeddings, the last one the head.
ModelPart part_of(const StageSplit& split, int stage, int64_t tensor_shards, int tp, int t);
ModelPart part_of(const StageSplit& split, const Layout& layout, int64_t tensor_shards, int rank);

}  // namespace finetune
