// The order in which gradients are added: one fixed binary tree whose leaves are the K virtual
// shards (core/numeric/subtrees.h), so that a sum's bits do not depend on how the terms are spread
// over processes. A process adds its own shards until only its largest subtrees remain
// (LocalReduce). A process with the subtrees of all adds them in the order of SubtreeOrder.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/numeric/subtrees.h"
#include "data/plan.h"
#include "distributed/touched_rows.h"
#include "distributed/zero_partition.h"

namespace finetune {

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

// Adds one process's shards. Each shard is computed in its own arena.
class LocalReduce {
 public:
  // `arenas`: arenas_needed(shards) arenas, `arena_floats` apart, in the backend's memory.
  // `chunks`: see make_gradient_reduce().
  LocalReduce(Backend& backend, const ZeroPartition& partition, IndexRange shards, float* arenas,
              int64_t arena_floats, std::vector<IndexRange> chunks = {});

  IndexRange shards() const { return shards_; }
  // Returns an arena for the gradient of the next shard. Rows of the word embedding are zero; the
  // dense part contains old values and must be overwritten. push() adds it.
  float* leaf(int chunk) { return arena(counters_.at(size_t(chunk)).leaf()); }
  void push(const TouchedRows& touched, int chunk);
  // Like push(), but the caller must do the returned additions of arenas.
  std::vector<Addition> take(int chunk);
  bool complete(int chunk) const { return counters_.at(size_t(chunk)).complete(); }
  // After the last push of each chunk: returns the arenas of the subtrees' sums in order, and
  // starts the next round.
  std::vector<float*> finish();

  static int64_t arenas_needed(IndexRange shards) { return TreeCounter::slots_needed(shards); }

 private:
  float* arena(int64_t place) const { return arenas_ + place * arena_floats_; }

  Backend& backend_;
  const ZeroPartition& partition_;
  IndexRange shards_;
  float* arenas_;
  int64_t arena_floats_;
  std::vector<IndexRange> chunks_;
  std::vector<TreeCounter> counters_;  // of each chunk
};

// The subtrees of several members (processes, or hosts), as a member that receives the others'
// subtrees adds them. A term is the address of some elements of a subtree.
class SubtreeOrder {
 public:
  SubtreeOrder() = default;
  explicit SubtreeOrder(std::span<const std::vector<Subtree>> members);

  static constexpr int kNobody = -1;

  int64_t count(int member) const;
  // The number of subtrees that `member` receives: all if it is kNobody.
  int64_t incoming(int member) const { return first_.back() - count(member); }
  // All terms in order: `own` are the member's, the others lie one behind the other from
  // `received`, `floats` each.
  std::vector<float*> terms(int member, std::span<float* const> own, float* received,
                            int64_t floats) const;
  // The terms of one member among all.
  std::span<float* const> of(int member, std::span<float* const> terms) const;
  // Adds all terms; the sum is then in the first.
  std::vector<Addition> additions(std::span<float* const> terms) const;

 private:
  std::vector<int64_t> first_{0};  // index of each member's first term, and the number of terms
  std::vector<TreeAddition> order_;
};

// Does the additions of arenas for these elements and rows only.
void add_arenas(Backend& backend, const ZeroPartition& partition, std::span<const Addition> arenas,
                IndexRange dense, RowList rows);
// Offsets each addition's arenas by `element`: the additions of slices that begin there.
std::vector<Addition> at_element(std::span<const Addition> arenas, int64_t element);

}  // namespace finetune
