// The subtrees of a range of leaves, and the order in which they are added.
#include "core/numeric/subtrees.h"

#include "core/error.h"

namespace finetune {

bool siblings(const Subtree& left, const Subtree& right) {
  return left.level == right.level && left.first % (int64_t{2} << left.level) == 0;
}

TreeCombination combine_subtrees(std::span<const Subtree> subtrees, bool all) {
  TreeCombination out;
  auto add_last_two = [&] {
    out.additions.push_back({out.left[out.left.size() - 2], out.left.back()});
    out.left.pop_back();
    out.subtrees.pop_back();
    out.subtrees.back().level += 1;
  };
  for (size_t i = 0; i < subtrees.size(); ++i) {
    if (i > 0) {
      FINETUNE_CHECK(subtrees[i - 1].first + (int64_t{1} << subtrees[i - 1].level) ==
                     subtrees[i].first);
    }
    out.left.push_back(int(i));
    out.subtrees.push_back(subtrees[i]);
    while (out.subtrees.size() >= 2 &&
           siblings(out.subtrees[out.subtrees.size() - 2], out.subtrees.back())) {
      add_last_two();
    }
  }
  while (all && out.left.size() > 1) add_last_two();
  return out;
}

std::vector<Subtree> leaves_of(IndexRange range) {
  std::vector<Subtree> leaves;
  for (int64_t leaf = range.begin; leaf < range.end; ++leaf) leaves.push_back({leaf, 0});
  return leaves;
}

std::vector<Subtree> subtrees_of(IndexRange range) {
  return combine_subtrees(leaves_of(range), false).subtrees;
}

}  // namespace finetune
