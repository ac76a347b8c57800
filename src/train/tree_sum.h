// Sums in one fixed binary tree, so that results do not depend on how the terms are spread over
// processes. The K leaves (virtual shards) are taken in order; neighbours are added, then
// neighbouring pairs, and so on, like carries in a binary counter; what is left over when K is not
// a power of two is folded from the smallest subtree up. The order of additions depends on K alone.
//
// For K a power of two, a process that owns K/P neighbouring leaves (P a power of two) computes one
// subtree of the same tree; adding the P roots in the same way (Communicator::all_reduce) gives the
// same bits for every P.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ops/backend.h"

namespace finetune {

// Gradients. At most arenas_needed(K) arenas of `elements` floats, allocated once. Use:
//   for each shard: compute into leaf() (which is zero), then push();
//   root() is the sum; after using it, clear().
class GradientTree {
 public:
  GradientTree(Backend& backend, int64_t elements, int64_t shards);

  float* leaf();  // (elements) zeroed; the same until push()
  void push();
  float* root();  // combines what was pushed (at least one leaf); valid until clear()
  // Starts over. `root_is_zero`: the root was zeroed by its user (the optimizer does that).
  void clear(bool root_is_zero);

  static int64_t arenas_needed(int64_t shards);  // floor(log2(shards)) + 1

 private:
  struct Arena {
    std::shared_ptr<void> memory;
    bool zero = true;
    float* data() const { return static_cast<float*>(memory.get()); }
  };
  struct Partial {
    size_t arena;
    int level;  // sum of 2^level leaves
  };
  size_t take_free();
  void combine_last_two();

  Backend& backend_;
  int64_t elements_;
  std::vector<Arena> arenas_;
  std::vector<size_t> free_;
  std::vector<Partial> partials_;  // levels strictly decreasing
  int64_t leaf_ = -1;
};

// The same tree over numbers, in double.
double tree_sum(std::span<const double> terms);

// L2 norm of a gradient arena: squares in double per block of kNormBlock, then the tree over the
// blocks. `block_sums` is working memory that is reused.
double gradient_norm(Backend& backend, Tensor gradients, const SparseRows& sparse,
                     std::vector<double>& block_sums);

}  // namespace finetune
