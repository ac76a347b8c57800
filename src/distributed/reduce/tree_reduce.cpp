// Which subtrees a range of shards has, and the order in which they are added.
#include "distributed/reduce/tree_reduce.h"

#include <algorithm>

#include "core/error.h"

namespace finetune {
namespace {

bool siblings(const Subtree& left, const Subtree& right) {
  return left.level == right.level && left.first % (int64_t{2} << left.level) == 0;
}

}  // namespace

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

std::vector<Subtree> subtrees_of(IndexRange range) {
  std::vector<Subtree> leaves;
  for (int64_t leaf = range.begin; leaf < range.end; ++leaf) leaves.push_back({leaf, 0});
  return combine_subtrees(leaves, false).subtrees;
}

TreeCounter::TreeCounter(IndexRange leaves) : leaves_(leaves), next_(leaves.begin) {}

int TreeCounter::take_free() {
  if (free_.empty()) return count_++;
  auto least = std::min_element(free_.begin(), free_.end());
  const int place = *least;
  free_.erase(least);
  return place;
}

int TreeCounter::leaf() {
  if (leaf_ < 0) leaf_ = take_free();
  return leaf_;
}

std::vector<TreeAddition> TreeCounter::push() {
  FINETUNE_CHECK(leaf_ >= 0 && next_ < leaves_.end);
  entries_.push_back({{next_++, 0}, leaf_});
  leaf_ = -1;
  std::vector<TreeAddition> additions;
  while (entries_.size() >= 2) {
    Entry& left = entries_[entries_.size() - 2];
    const Entry right = entries_.back();
    if (!siblings(left.subtree, right.subtree)) break;
    additions.push_back({left.place, right.place});
    left.subtree.level += 1;
    free_.push_back(right.place);
    entries_.pop_back();
  }
  return additions;
}

std::vector<int> TreeCounter::slots() const {
  FINETUNE_CHECK(leaf_ < 0 && next_ == leaves_.end);
  std::vector<int> places;
  for (const Entry& entry : entries_) places.push_back(entry.place);
  return places;
}

void TreeCounter::clear() {
  for (const Entry& entry : entries_) free_.push_back(entry.place);
  entries_.clear();
  next_ = leaves_.begin;
}

int TreeCounter::slots_needed(IndexRange range) {
  TreeCounter counter(range);
  for (int64_t leaf = range.begin; leaf < range.end; ++leaf) {
    counter.leaf();
    counter.push();
  }
  return counter.count_;
}

}  // namespace finetune
