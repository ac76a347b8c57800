// The fixed binary tree in which shard gradients are added, and the order of its additions.
// Results do not depend on how the terms are spread over processes. The K leaves (virtual shards)
// are taken in order; neighbours are added, then neighbouring pairs, and so on, like carries in a
// binary counter; what is left over when K is not a power of two is folded from the smallest
// subtree up. The order of additions depends on K alone: a process that owns some neighbouring
// leaves passes on the largest subtrees that it has whole, and whoever has all subtrees adds them
// as the tree says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/numeric/tree_sum.h"
#include "data/plan.h"

namespace finetune {

// The sum of leaves [first, first + 2^level).
struct Subtree {
  int64_t first = 0;
  int level = 0;
};

// Subtree `from` is added to subtree `to`; the sum is the new `to`. Subtrees are numbers in a list.
struct TreeAddition {
  int to = 0;
  int from = 0;
};

// What can be added of neighbouring subtrees, and what is left of them. With `all` the leftovers
// are folded into the first subtree: the tree's root.
struct TreeCombination {
  std::vector<TreeAddition> additions;
  std::vector<int> left;          // numbers of the subtrees that remain
  std::vector<Subtree> subtrees;  // these subtrees
};
TreeCombination combine_subtrees(std::span<const Subtree> subtrees, bool all);

// The largest subtrees of leaves [range.begin, range.end), in order.
std::vector<Subtree> subtrees_of(IndexRange range);

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
