// Gradient reduction inside one process: adds its virtual shards in the tree's order. Each shard is
// computed in its own arena. The arenas are added as the tree says (tree_reduce.h) until only the
// process's largest subtrees remain.
#pragma once

#include <cstdint>
#include <vector>

#include "distributed/reduce/tree_reduce.h"
#include "distributed/touched_rows.h"
#include "distributed/zero_partition.h"

namespace finetune {

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

// Does the additions of arenas for these elements and rows only.
void add_arenas(Backend& backend, const ZeroPartition& partition, std::span<const Addition> arenas,
                IndexRange dense, RowList rows);
// Offsets each addition's arenas by `element`: the additions of slices that begin there.
std::vector<Addition> at_element(std::span<const Addition> arenas, int64_t element);

}  // namespace finetune
