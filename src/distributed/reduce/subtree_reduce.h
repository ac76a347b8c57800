// Gradient reduction between processes: owners add the sums of all processes' subtrees.
// Each process has put the sums of its largest subtrees into arenas in memory that its host's
// processes share. Every owner (zero_partition.h) adds its part of all subtrees as the tree says,
// then that of all hosts' subtrees. So the work and the bytes are spread, and the sum of a part
// lies where its owner finds it.
//
// Of the word embedding only the rows that the global batch has are looked at; all others are zero.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "distributed/reduce/tree_reduce.h"
#include "distributed/touched_rows.h"
#include "distributed/zero_partition.h"

namespace finetune {

// What a process with these shards has in its host's memory: how many arenas, and in which of them
// its subtrees are in the end.
struct ProcessArenas {
  int64_t count = 0;
  std::vector<int> subtrees;
};
ProcessArenas arenas_of_shards(IndexRange shards);    // those of a LocalReduce
ProcessArenas arenas_of_subtrees(IndexRange shards);  // one for each subtree and no more

class SubtreeReduce {
 public:
  // Collective. Arenas of `elements` floats, K `shards`. Where the host has several processes or
  // the run several hosts, `backend` is one that computes in host memory.
  SubtreeReduce(Backend& backend, Communicator& comm, const ZeroPartition& partition,
                int64_t elements, int64_t shards, ProcessArenas (*arenas_of)(IndexRange));

  float* arena(int64_t number) const { return at(first_slot_ + number); }  // this process's
  int64_t arena_floats() const { return arena_floats_; }
  // Collective, when this process's subtrees are there. Afterwards the sums of what it owns are in
  // sum(), and all other rows that the batch has touched are zero. comm counts as sent what others
  // get of them, through memory of the host too.
  void reduce_scatter(const TouchedRows& touched);
  // An arena; the same for all processes of the host.
  float* sum() const { return at(sum_slot_); }

 private:
  float* at(int64_t place) const {
    return static_cast<float*>(memory_.get()) + place * arena_floats_;
  }
  RowList rows_of(int owner, const TouchedRows& touched) const;
  void count_handed_on(const TouchedRows& touched);
  void add_hosts_dense();
  void add_hosts_rows(const TouchedRows& touched);

  Backend& backend_;
  Communicator& comm_;
  const ZeroPartition& partition_;
  int64_t arena_floats_;
  int64_t first_slot_ = 0;  // of this process's arenas in the host's memory
  int64_t sum_slot_ = 0;
  int64_t own_subtrees_ = 0;
  std::shared_ptr<void> memory_;

  std::vector<Addition> host_additions_;  // between the subtrees of this host's processes
  std::vector<int64_t> subtree_slots_;    // of what remains: this host's subtrees
  std::vector<int> subtrees_of_host_;     // their number, for every host
  std::vector<TreeAddition>
      last_additions_;  // between the subtrees of all hosts, numbered in order
  std::vector<float> outgoing_, incoming_, local_;  // between hosts
};

}  // namespace finetune
