// Column sums of matrices without atomics, in an order that depends only on shapes. Pieces of
// kRowsOfASum rows are summed first, then the pieces.
#pragma once

#include "ops/cuda/module/context.h"
#include "ops/device_sums.h"

namespace finetune::cuda {

// Destinations of sums: the first `each` go to first[0], ..., the next to second[0], ..., the
// others to third[0], ...; with `accumulate` they are added there. What has no place is dropped.
struct PartSums {
  int64_t each;
  bool accumulate;
  float* first;
  float* second = nullptr;
  float* third = nullptr;

  __device__ float* of(int64_t i) const {
    if (i < each) return first + i;
    float* const to = i < 2 * each ? second : third;
    return to ? to + (i - (i < 2 * each ? each : 2 * each)) : nullptr;
  }
};

// Adds parts (pieces, count), sums of pieces, piece by piece; pieces may be 0.
void add_parts(Context& context, const float* parts, int64_t pieces, int64_t count, PartSums to);

// sums (x.cols) = or += column sums of x
void column_sums(Context& context, AnyMatrix x, float* sums, bool accumulate);

// sums (2, x.cols) = or += weights (x.rows, 2)^T * x: a product too narrow for its own tiles
void two_weighted_sums(Context& context, Matrix weights, AnyMatrix x, Matrix sums, bool accumulate);

}  // namespace finetune::cuda
