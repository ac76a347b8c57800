// Adds shard gradients of one process in the tree's order as they come.
#include "distributed/reduce/local_reduce.h"

namespace finetune {

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
                         float* arenas, int64_t arena_floats)
    : backend_(backend),
      partition_(partition),
      shards_(shards),
      arenas_(arenas),
      arena_floats_(arena_floats),
      counter_(shards) {}

void LocalReduce::push(const TouchedRows& touched) {
  add_arenas(backend_, partition_, take(), {0, partition_.dense_elements()},
             touched.list({0, INT32_MAX}));
}

std::vector<Addition> LocalReduce::take() {
  std::vector<Addition> additions;
  for (const TreeAddition& a : counter_.push()) additions.push_back({arena(a.to), arena(a.from)});
  return additions;
}

std::vector<float*> LocalReduce::finish() {
  std::vector<float*> sums;
  for (int place : counter_.slots()) sums.push_back(arena(place));
  counter_.clear();
  return sums;
}

}  // namespace finetune
