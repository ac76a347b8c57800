#include "train/shard_sum.h"

namespace finetune {

void add_arenas(Backend& backend, const Ownership& ownership, std::span<const Addition> arenas,
                IndexRange dense, RowList rows) {
  backend.merge(at_element(arenas, dense.begin), dense.size());
  backend.merge_rows(at_element(arenas, ownership.dense_elements()), rows, ownership.cols());
}

std::vector<Addition> at_element(std::span<const Addition> arenas, int64_t element) {
  std::vector<Addition> out;
  for (const Addition& a : arenas) out.push_back({a.to + element, a.from + element});
  return out;
}

ShardSum::ShardSum(Backend& backend, const Ownership& ownership, IndexRange shards, float* arenas,
                   int64_t arena_floats)
    : backend_(backend),
      ownership_(ownership),
      shards_(shards),
      arenas_(arenas),
      arena_floats_(arena_floats),
      counter_(shards) {}

void ShardSum::push(const NeededRows& needed) {
  add_arenas(backend_, ownership_, take(), {0, ownership_.dense_elements()},
             needed.list({0, INT32_MAX}));
}

std::vector<Addition> ShardSum::take() {
  std::vector<Addition> additions;
  for (const TreeAddition& a : counter_.push()) additions.push_back({arena(a.to), arena(a.from)});
  return additions;
}

std::vector<float*> ShardSum::finish() {
  std::vector<float*> sums;
  for (int place : counter_.places()) sums.push_back(arena(place));
  counter_.clear();
  return sums;
}

}  // namespace finetune
