// The sum of numbers in one fixed binary tree (core/numeric/subtrees.h). Neighbours are added, then
// neighbouring pairs, and so on; leftovers are folded from the smallest subtree up. GPU kernels
// call it too.
#pragma once

#include <cstdint>
#include <span>

namespace finetune {

constexpr double tree_sum(const double* terms, int64_t count) {
  if (count == 0) return 0;
  double partial[64];  // sums of subtrees, largest subtree first
  int subtrees = 0;
  for (int64_t i = 0; i < count; ++i) {
    partial[subtrees++] = terms[i];
    for (int64_t carries = i; carries % 2 == 1; carries /= 2, --subtrees) {
      partial[subtrees - 2] += partial[subtrees - 1];
    }
  }
  for (; subtrees > 1; --subtrees) partial[subtrees - 2] += partial[subtrees - 1];
  return partial[0];
}

inline double tree_sum(std::span<const double> terms) {
  return tree_sum(terms.data(), int64_t(terms.size()));
}

}  // namespace finetune
