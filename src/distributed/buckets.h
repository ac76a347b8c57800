// Gradient buckets: pieces of the dense gradient, in the order in which the backward pass ends
// them. A finished bucket can be sent while the layers below are computed.
#pragma once

#include <cstdint>
#include <vector>

#include "data/plan.h"
#include "model/parameters.h"

namespace finetune {

struct Bucket {
  IndexRange elements;  // of the arena, between boundaries of norm blocks
  int layer = 0;        // the bucket is ready when this layer's gradient is
};

// Joins layers in the table's order into buckets of at least `least_bytes`. The buckets follow each
// other from element 0; the elements behind the last one are untrained or the word embedding. The
// result is the same on every process.
std::vector<Bucket> backward_buckets(const ParameterTable& table, int lowest_layer,
                                     int64_t least_bytes);

std::vector<int64_t> ends_of(const std::vector<Bucket>& buckets);

// The dense gradient of each chunk of the table's part. The ranges are adjacent in the arena, the
// last chunk first; the first chunk includes the embeddings except the word embedding.
std::vector<IndexRange> elements_of_chunks(const ParameterTable& table);

}  // namespace finetune
