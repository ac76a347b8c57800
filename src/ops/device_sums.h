// How rows are cut into pieces for sums on a GPU (ops/cuda/kernels/column_sums.h). The module's
// calls and the forecast of its memory must agree.
#pragma once

#include <algorithm>
#include <cstdint>

namespace finetune {

constexpr int64_t kRowsOfASum = 64;

// For layer normalisation's gradients a piece is a block's rows, several per warp if there are
// enough rows for the whole device: fewer pieces.
constexpr int64_t kLayerNormWarps = 4;
constexpr int64_t kRowsOfOneEach = 2048;
constexpr int64_t layer_norm_rows(int64_t rows) {
  return rows > kRowsOfOneEach ? 4 : 1;
}

// Columns of rows whose sums a norm's backward kernel keeps, packed by eight; it sums wider rows in
// a launch of its own.
constexpr int64_t kMostSummedColumns = 1024;

// The same for gradients of activations. Of such a piece each warp sums its rows in order, row by
// row after all warps; the warps' sums are added in order, then the pieces' (column_sums.cu).
constexpr int64_t kActivationWarps = 8;
constexpr int64_t activation_rows(int64_t rows) {
  return rows > kRowsOfOneEach ? 4 : 1;
}

// The largest number of floats that sums over rows keep: threes of `hidden` columns, or `wide`
// columns.
constexpr int64_t sum_floats(int64_t rows, int64_t hidden, int64_t wide) {
  auto pieces = [](int64_t count, int64_t each) { return (count + each - 1) / each; };
  const int64_t few = std::min(rows, kRowsOfOneEach);
  return std::max({pieces(few, kActivationWarps) * wide,
                   pieces(rows, activation_rows(rows) * kActivationWarps) * wide,
                   pieces(few, kLayerNormWarps) * 3 * hidden,
                   pieces(rows, layer_norm_rows(rows) * kLayerNormWarps) * 3 * hidden});
}

}  // namespace finetune
