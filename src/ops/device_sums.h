// How rows are cut into pieces for sums on a GPU (ops/cuda/kernels/column_sums.h). The module's
// calls and the forecast of its memory must agree.
#pragma once

#include <algorithm>
#include <cstdint>

namespace finetune {

constexpr int64_t kRowsOfASum = 64;

// For layer normalisation's gradients a piece is the rows of a block. If there are enough rows for
// the whole device, a warp has several of them, so that there are fewer pieces.
constexpr int64_t kLayerNormWarps = 4;
constexpr int64_t kRowsOfOneEach = 2048;
constexpr int64_t layer_norm_rows(int64_t rows) {
  return rows > kRowsOfOneEach ? 4 : 1;
}

// A norm's backward kernel sums rows of up to this many columns itself, eight columns a lane. Wider
// rows are summed in another launch.
constexpr int64_t kMostSummedColumns = 1024;

// The same for gradients of activations. The warps of a piece take its rows in turn, and each sums
// its own in order; the warps' sums are added in order, then the pieces' (column_sums.cu).
constexpr int64_t kActivationWarps = 8;
constexpr int64_t activation_rows(int64_t rows) {
  return rows > kRowsOfOneEach ? 4 : 1;
}

// The largest number of floats that sums over rows keep: for each piece three sums of `hidden`
// columns, or one of `wide` columns.
constexpr int64_t sum_floats(int64_t rows, int64_t hidden, int64_t wide) {
  auto pieces = [](int64_t count, int64_t each) { return (count + each - 1) / each; };
  const int64_t few = std::min(rows, kRowsOfOneEach);
  return std::max({pieces(few, kActivationWarps) * wide,
                   pieces(rows, activation_rows(rows) * kActivationWarps) * wide,
                   pieces(few, kLayerNormWarps) * 3 * hidden,
                   pieces(rows, layer_norm_rows(rows) * kLayerNormWarps) * 3 * hidden});
}

}  // namespace finetune
