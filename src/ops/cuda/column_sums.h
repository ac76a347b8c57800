// Sums over the rows of matrices, column by column, in a fixed order without atomics: pieces of
// kRowsOfASum rows first, then the pieces in their order.
#pragma once

#include "ops/cuda/context.h"

namespace finetune::cuda {

constexpr int64_t kRowsOfASum = 64;

// parts (pieces, count) are sums of pieces, piece by piece; to[i] += the sum of column i.
void add_parts(Context& context, const float* parts, int64_t pieces, int64_t count, float* to);

// sums (x.cols) += column sums of x
void column_sums(Context& context, Matrix x, float* sums);

}  // namespace finetune::cuda
