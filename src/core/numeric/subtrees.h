// Subtrees of the fixed binary tree of additions, and the order of the additions. Leaves are taken
// in order; neighbours are added, then neighbouring pairs, and so on, like carries in a binary
// counter. If their number is not a power of two, the leftovers are folded from the smallest
// subtree up. The order depends only on the number of leaves. A process that owns some neighbouring
// leaves passes on its largest complete subtrees, and the process that has all subtrees adds them
// in the tree's order.
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

// Adds subtree `from` to subtree `to`; the sum replaces `to`. Subtrees are indices in a list.
struct TreeAddition {
  int to = 0;
  int from = 0;
};

// The additions possible among neighbouring subtrees, and the subtrees that remain. With `all` the
// leftovers are folded into the first subtree: the tree's root.
struct TreeCombination {
  std::vector<TreeAddition> additions;
  std::vector<int> left;          // indices of the subtrees that remain
  std::vector<Subtree> subtrees;  // these subtrees
};
TreeCombination combine_subtrees(std::span<const Subtree> subtrees, bool all);

std::vector<Subtree> leaves_of(IndexRange range);  // one per leaf
// The largest complete subtrees of leaves [range.begin, range.end), in order.
std::vector<Subtree> subtrees_of(IndexRange range);

// Whether the tree adds `right` to its left neighbour `left` before any other subtree.
bool siblings(const Subtree& left, const Subtree& right);

}  // namespace finetune
