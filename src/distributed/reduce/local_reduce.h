// Gradient reduction inside one process: its virtual shards are added in the tree's order.
// Each is computed into an arena of its own, and the arenas are added as the tree says
// (tree_reduce.h) until those are left that hold the process's largest subtrees.
#pragma once

#include <cstdint>
#include <vector>

#include "distributed/reduce/tree_reduce.h"
#include "distributed/touched_rows.h"
#include "distributed/zero_partition.h"

namespace finetune {

class LocalReduce {
 public:
  // `arenas`: arenas_needed(shards) of them, `arena_floats` apart, in the backend's memory.
  // `chunks`: as make_gradient_reduce().
  LocalReduce(Backend& backend, const ZeroPartition& partition, IndexRange shards, float* arenas,
              int64_t arena_floats, std::vector<IndexRange> chunks = {});

  IndexRange shards() const { return shards_; }
  // Arena for the gradient of the next shard: zero in all rows of the word embedding; the dense
  // part is what an earlier step has left, to be overwritten. push() takes it in.
  float* leaf(int chunk) { return arena(counters_.at(size_t(chunk)).leaf()); }
  void push(const TouchedRows& touched, int chunk);
  // The same, but the additions of whole arenas are for the caller to do.
  std::vector<Addition> take(int chunk);
  bool complete(int chunk) const { return counters_.at(size_t(chunk)).complete(); }
  // After the last push of each chunk: where the subtrees' sums lie, in order. Then the next round
  // begins.
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

// Additions of whole arenas, but only of these elements and rows.
void add_arenas(Backend& backend, const ZeroPartition& partition, std::span<const Addition> arenas,
                IndexRange dense, RowList rows);
// Additions of whole arenas as those of what begins at this element of each.
std::vector<Addition> at_element(std::span<const Addition> arenas, int64_t element);

}  // namespace finetune
