// Sums over the rows of matrices, column by column, without atomics and in an order that shapes
// alone decide: pieces of kRowsOfASum rows first, then the pieces.
#pragma once

#include "ops/cuda/context.h"

namespace finetune::cuda {

constexpr int64_t kRowsOfASum = 64;

// parts (pieces, count) are sums of pieces, piece by piece; to[i] += the sum of column i.
void add_parts(Context& context, const float* parts, int64_t pieces, int64_t count, float* to);
// The same where columns from `split` on go to rest[0], ...
void add_parts(Context& context, const float* parts, int64_t pieces, int64_t count, float* to,
               int64_t split, float* rest);

// sums (x.cols) += column sums of x
void column_sums(Context& context, AnyMatrix x, float* sums);

}  // namespace finetune::cuda
