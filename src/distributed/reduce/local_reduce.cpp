// Adds one process's shard gradients in the tree's order as they arrive.
#include "distributed/reduce/local_reduce.h"

#include <algorithm>
#include <utility>

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

SubtreeOrder::SubtreeOrder(std::span<const std::vector<Subtree>> members) {
  std::vector<Subtree> all;
  for (const std::vector<Subtree>& subtrees : members) {
    all.insert(all.end(), subtrees.begin(), subtrees.end());
    first_.push_back(int64_t(all.size()));
  }
  order_ = combine_subtrees(all, true).additions;
}

int64_t SubtreeOrder::count(int member) const {
  return member == kNobody ? 0 : first_.at(size_t(member) + 1) - first_[size_t(member)];
}

std::span<float* const> SubtreeOrder::of(int member, std::span<float* const> terms) const {
  return terms.subspan(size_t(first_.at(size_t(member))), size_t(count(member)));
}

std::vector<float*> SubtreeOrder::terms(int member, std::span<float* const> own, float* received,
                                        int64_t floats) const {
  std::vector<float*> all;
  for (int other = 0; other + 1 < int(first_.size()); ++other) {
    if (other == member) {
      all.insert(all.end(), own.begin(), own.end());
      continue;
    }
    for (int64_t i = 0; i < count(other); ++i, received += floats) all.push_back(received);
  }
  FINETUNE_CHECK(int64_t(all.size()) == first_.back());
  return all;
}

std::vector<Addition> SubtreeOrder::additions(std::span<float* const> terms) const {
  std::vector<Addition> additions;
  for (const TreeAddition& a : order_) {
    additions.push_back({terms[size_t(a.to)], terms[size_t(a.from)]});
  }
  return additions;
}

void add_arenas(Backend& backend, const ZeroPartition& partition, std::span<const Addition> arenas,
                IndexRange dense, RowList rows) {
  backend.merge(at_element(arenas, dense.begin), dense.size());
  backend.merge_rows(at_element(arenas, partition.dense_elements()), rows, partition.cols());
}

std::vector<Addition> at_element(std::span<const Addition> arenas, int64_t element) {
  std::vector<Addition> out;
  for (const Addition& a : arenas) out.push_back({a.to + element, a.from + element});
  return out;
}

LocalReduce::LocalReduce(Backend& backend, const ZeroPartition& partition, IndexRange shards,
                         float* arenas, int64_t arena_floats, std::vector<IndexRange> chunks)
    : backend_(backend),
      partition_(partition),
      shards_(shards),
      arenas_(arenas),
      arena_floats_(arena_floats),
      chunks_(std::move(chunks)) {
  if (chunks_.empty()) chunks_ = {{0, partition.dense_elements()}};
  counters_.assign(chunks_.size(), TreeCounter(shards));
}

void LocalReduce::push(const TouchedRows& touched, int chunk) {
  const std::vector<Addition> additions = take(chunk);
  const IndexRange dense = chunks_[size_t(chunk)];
  if (chunk == 0) {
    add_arenas(backend_, partition_, additions, dense, touched.list({0, INT32_MAX}));
  } else {
    backend_.merge(at_element(additions, dense.begin), dense.size());
  }
}

std::vector<Addition> LocalReduce::take(int chunk) {
  std::vector<Addition> additions;
  for (const TreeAddition& a : counters_.at(size_t(chunk)).push()) {
    additions.push_back({arena(a.to), arena(a.from)});
  }
  return additions;
}

// All chunks are at the same state now.
std::vector<float*> LocalReduce::finish() {
  const std::vector<int> places = counters_.front().slots();
  for (TreeCounter& counter : counters_) {
    FINETUNE_CHECK(counter.slots() == places);
    counter.clear();
  }
  std::vector<float*> sums;
  for (int place : places) sums.push_back(arena(place));
  return sums;
}

}  // namespace finetune
