// The gradient of a global batch: each virtual shard's is computed into an arena of its own, and
// the arenas are added as the tree says (tree_sum.h), on this process, between the processes of a
// host (through memory that they share), and between hosts. Every owner (ownership.h) adds its
// part, so that the work and the bytes are spread, and the sum of a part lies where its owner finds
// it.
//
// Of the word embedding only the rows that the global batch has are looked at; all others are zero.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "ops/backend.h"
#include "train/host_memory.h"
#include "train/ownership.h"
#include "train/tree_sum.h"

namespace finetune {

// Rows of the word embedding that a global batch has: ascending, also in the backend's memory.
class NeededRows {
 public:
  NeededRows(Backend& backend, int64_t rows);
  void clear();
  void add(std::span<const int32_t> ids);  // any number of times, duplicates are fine
  void complete();                         // sorts and uploads

  std::span<const int32_t> within(IndexRange rows) const;
  RowList list(IndexRange rows) const;

 private:
  Backend& backend_;
  std::vector<int32_t> rows_;
  std::vector<bool> is_needed_;
  std::shared_ptr<void> device_;
};

class GradientSum {
 public:
  // Collective. Arenas of `elements` floats, K `shards`.
  GradientSum(Backend& backend, Communicator& comm, const Ownership& ownership, int64_t elements,
              int64_t shards);

  IndexRange shards() const { return shards_; }  // this process's
  // Arena for the gradient of this process's next shard: zero in all rows of the word embedding;
  // the dense part is what an earlier step has left, to be overwritten. push() takes it in.
  float* leaf();
  void push(const NeededRows& needed);
  // Collective, after the last push. Afterwards the sums of what this process owns are in sum(),
  // and all other rows that the batch has touched are zero.
  void reduce(const NeededRows& needed);
  // An arena; the same for all processes of the host. Who uses the rows of a sum leaves zeros.
  float* sum() const { return arena(sum_place_); }

  // Arenas that a process with these shards needs.
  static int64_t arenas_needed(IndexRange shards) { return TreeCounter::places_needed(shards); }

 private:
  float* arena(int64_t place) const {
    return static_cast<float*>(memory_.get()) + place * arena_floats_;
  }
  // Additions of whole arenas, but only of these elements and rows.
  void add(std::span<const Addition> arenas, IndexRange dense, RowList rows);
  void add_hosts_dense();
  void add_hosts_rows(const NeededRows& needed);

  Backend& backend_;
  Communicator& comm_;
  const Ownership& ownership_;
  int64_t arena_floats_;
  IndexRange shards_;
  TreeCounter counter_;
  int64_t first_place_ = 0;  // of this process's arenas in the host's memory
  int64_t sum_place_ = 0;
  std::shared_ptr<void> memory_;

  std::vector<Addition> host_additions_;      // between the subtrees of this host's processes
  std::vector<int64_t> node_places_;          // of what remains: this host's nodes
  std::vector<int> nodes_of_host_;            // their number, for every host
  std::vector<TreeAddition> last_additions_;  // between the nodes of all hosts, numbered in order
  std::vector<float> outgoing_, incoming_, local_;  // between hosts
};

}  // namespace finetune
