// Column sums of matrices without atomics, in an order that depends only on shapes. Pieces of
// kRowsOfASum rows are summed first, then the pieces.
#pragma once

#include "ops/cuda/module/context.h"
#include "ops/device_sums.h"

namespace finetune::cuda {

// Destinations of sums: the first `split` go to first[0], ..., the others to rest[0], ...; with
// `accumulate` they are added there. `rest` may be null: the others are dropped.
struct PartSums {
  float* first;
  int64_t split;
  float* rest;
  bool accumulate;
};

// Adds parts (pieces, count), sums of pieces, piece by piece; pieces may be 0.
void add_parts(Context& context, const float* parts, int64_t pieces, int64_t count, PartSums to);

// sums (x.cols) = or += column sums of x
void column_sums(Context& context, AnyMatrix x, float* sums, bool accumulate);

// sums (2, x.cols) = or += weights (x.rows, 2)^T * x: a product too narrow for its own tiles
void two_weighted_sums(Context& context, Matrix weights, AnyMatrix x, Matrix sums, bool accumulate);

}  // namespace finetune::cuda
