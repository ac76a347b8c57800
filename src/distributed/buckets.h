// Gradient buckets: pieces of the dense gradient in the order in which the backward pass ends them.
// What is ready can go to other processes while the layers below are computed.
#pragma once

#include <cstdint>
#include <vector>

#include "data/plan.h"
#include "model/parameters.h"

namespace finetune {

struct Bucket {
  IndexRange elements;  // of the arena, from one boundary of norm blocks to another
  int layer = 0;        // whose gradient is the last one of the bucket to be ready
};

// Layers in the table's order, joined until they are `least_bytes` or more. The buckets follow each
// other from element 0; behind the last one nothing is trained, or is the word embedding. The same
// on every process.
std::vector<Bucket> backward_buckets(const ParameterTable& table, int lowest_layer,
                                     int64_t least_bytes);

std::vector<int64_t> ends_of(const std::vector<Bucket>& buckets);

// The dense gradient of each chunk of the table's part: neighbours in the arena, the last chunk
// first, the first with the embeddings but for the word embedding.
std::vector<IndexRange> elements_of_chunks(const ParameterTable& table);

}  // namespace finetune
