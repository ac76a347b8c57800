// Column sums of matrices without atomics, in an order that shapes alone decide.
// Pieces of kRowsOfASum rows are added first, then the pieces.
#pragma once

#include "ops/cuda/module/context.h"
#include "ops/device_sums.h"

namespace finetune::cuda {

// Where sums go: the first `split` to first[0], ..., the others to rest[0], ...; with `accumulate`
// they are added to what is there.
struct PartSums {
  float* first;
  int64_t split;
  float* rest;
  bool accumulate;
};

// parts (pieces, count) are sums of pieces, piece by piece; there may be none.
void add_parts(Context& context, const float* parts, int64_t pieces, int64_t count, PartSums to);

// sums (x.cols) = or += column sums of x
void column_sums(Context& context, AnyMatrix x, float* sums, bool accumulate);

// sums (2, x.cols) = or += weights (x.rows, 2)^T * x: a product too thin for tiles of it
void two_weighted_sums(Context& context, Matrix weights, AnyMatrix x, Matrix sums, bool accumulate);

}  // namespace finetune::cuda
