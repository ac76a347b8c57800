// How much memory a GPU's operations need for values that they keep while they run.
// It is the module's Scratch (ops/cuda/module/context.h), for passes of a model. The module and the
// forecast must agree on it.
#pragma once

#include <cstdint>

namespace finetune {

// Bytes for the largest micro-batches.
struct ScratchSizes {
  int64_t left = 0, right = 0;  // operands of a product that are rounded for it
  int64_t sums = 0;             // sums over pieces of the rows
  int64_t weighted = 0;         // sums over each row in attention's gradients

  constexpr int64_t total() const { return left + right + sums + weighted; }
};

}  // namespace finetune
