// Assigns subtrees of a range of shards to slots and lists the additions.
#include "distributed/reduce/tree_reduce.h"

#include <algorithm>

#include "core/error.h"

namespace finetune {

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
