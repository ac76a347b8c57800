// Adds one process's shard gradients in the tree's order as they arrive.
#include "distributed/reduce/local_reduce.h"

#include <utility>

#include "core/error.h"

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
