// The memory of a GPU's second stream (ops/cuda/module/second_stream.h). The module and the
// forecast must agree on it.
#pragma once

#include <cstdint>

#include "ops/device_sums.h"

namespace finetune {

constexpr int64_t kProductWorkspace = int64_t{32} << 20;  // of each stream; cuBLAS's own on Hopper

// The largest operands of weight gradients on the second stream: the products' rows, the columns of
// operands that may have to be rounded, and the columns whose sums are a bias's gradient.
struct SecondStreamLimits {
  int64_t rows = 0, rounded_cols = 0, summed_cols = 0;
};

// Bytes.
struct SecondStreamMemory {
  int64_t rounded = 0;  // of each of two operands; 0 in fp32
  int64_t sums = 0;

  constexpr SecondStreamMemory(const SecondStreamLimits& most, bool bf16)
      : rounded(bf16 ? most.rows * ((most.rounded_cols + 7) / 8 * 8) * 2 : 0),
        sums((most.rows + kRowsOfASum - 1) / kRowsOfASum * most.summed_cols * 4) {}
  constexpr int64_t total() const { return kProductWorkspace + 2 * rounded + sums; }
};

}  // namespace finetune
