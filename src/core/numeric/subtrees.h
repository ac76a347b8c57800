// Subtrees of the fixed binary tree in which terms are added, and the order of the additions.
// The leaves are taken in order; neighbours are added, then neighbouring pairs, and so on, like
// carries in a binary counter; what is left over when their number is not a power of two is folded
// from the smallest subtree up. The order of additions depends on the number of leaves alone: a
// process that owns some neighbouring leaves passes on the largest subtrees that it has whole, and
// whoever has all subtrees adds them as the tree says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/numeric/index_range.h"

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

std::vector<Subtree> leaves_of(IndexRange range);  // one by one
// The largest subtrees of leaves [range.begin, range.end), in order.
std::vector<Subtree> subtrees_of(IndexRange range);

// Whether the tree adds the second to the first, its neighbour, before any other.
bool siblings(const Subtree& left, const Subtree& right);

}  // namespace finetune
