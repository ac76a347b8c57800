// The fixed binary tree in which shard gradients are added, and the order of its additions.
// Results do not depend on how the terms are spread over processes. The K leaves are virtual shards
// (core/numeric/subtrees.h).
#pragma once

#include <span>
#include <vector>

#include "core/numeric/subtrees.h"
#include "core/numeric/tree_sum.h"
#include "data/plan.h"

namespace finetune {

// The same tree over numbers, in double.
inline double tree_sum(std::span<const double> terms) {
  return tree_sum(terms.data(), int64_t(terms.size()));
}

// Keeps subtree sums of some leaves in as few places as needed: leaf() is the place of the next
// leaf's term; push() takes it in and says what must now be added to what.
class TreeCounter {
 public:
  explicit TreeCounter(IndexRange leaves);

  int leaf();  // the same place until push()
  std::vector<TreeAddition> push();
  bool complete() const { return next_ == leaves_.end; }  // no leaf is left
  // Of the subtrees after the last push, in order; then the next round begins.
  std::vector<int> slots() const;
  void clear();

  // Places that the leaves of `range` need; 0 if there are none.
  static int slots_needed(IndexRange range);

 private:
  struct Entry {
    Subtree subtree;
    int place;
  };
  int take_free();

  IndexRange leaves_;
  int64_t next_;
  int leaf_ = -1;
  int count_ = 0;
  std::vector<int> free_;
  std::vector<Entry> entries_;
};

}  // namespace finetune
