// The fixed binary tree in which shard gradients are added, and the order of its additions. Results
// do not depend on how the terms are spread over processes. The K leaves are virtual shards
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

// Keeps subtree sums of some leaves in as few slots as possible. leaf() is the slot of the next
// leaf's term; push() records it and returns the additions that are now due.
class TreeCounter {
 public:
  explicit TreeCounter(IndexRange leaves);

  int leaf();  // the same place until push()
  std::vector<TreeAddition> push();
  bool complete() const { return next_ == leaves_.end; }  // all leaves are pushed
  // The slots of the subtrees after the last push, in order. Then the next round begins.
  std::vector<int> slots() const;
  void clear();

  // The number of slots for the leaves of `range`; 0 if it is empty.
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
