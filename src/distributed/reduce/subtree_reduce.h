// Gradient reduction between processes: owners add the sums of all processes' subtrees. Each
// process puts the sums of its largest subtrees into arenas shared within its host. Every owner
// (zero_partition.h) adds its part of all subtrees in the tree's order, first of its host's
// processes, then of all hosts. So work and bytes are spread evenly, and each sum ends where its
// owner needs it.
//
// Only the rows of the word embedding that occur in the global batch are added; all others are
// zero.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "distributed/reduce/local_reduce.h"
#include "distributed/touched_rows.h"
#include "distributed/zero_partition.h"

namespace finetune {

// A process's arenas in its host's memory: their number, and which of them finally hold its
// subtrees.
struct ProcessArenas {
  int64_t count = 0;
  std::vector<int> subtrees;
};
ProcessArenas arenas_of_shards(IndexRange shards);    // as LocalReduce leaves them
ProcessArenas arenas_of_subtrees(IndexRange shards);  // one arena for each subtree

class SubtreeReduce {
 public:
  // Collective. Arenas of `elements` floats, K `shards`. With several processes on the host or
  // several hosts, `backend` must compute in host memory.
  SubtreeReduce(Backend& backend, Communicator& comm, const ZeroPartition& partition,
                int64_t elements, int64_t shards, ProcessArenas (*arenas_of)(IndexRange));

  float* arena(int64_t number) const { return at(first_slot_ + number); }  // this process's
  int64_t arena_floats() const { return arena_floats_; }
  // Collective, when this process's subtrees are ready. Afterwards sum() holds the sums of this
  // process's part, and all other touched rows are zero. comm counts the bytes that others receive,
  // also through shared memory.
  void reduce_scatter(const TouchedRows& touched);
  // An arena, the same for all processes of the host.
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
  int64_t first_slot_ = 0;  // index of this process's first arena in the host's memory
  int64_t sum_slot_ = 0;
  int64_t own_subtrees_ = 0;
  std::shared_ptr<void> memory_;

  std::vector<Addition> host_additions_;            // among the subtrees of this host's processes
  std::vector<int64_t> subtree_slots_;              // of the subtrees that remain on this host
  SubtreeOrder hosts_;                              // of the subtrees that remain, by host
  std::vector<float> outgoing_, incoming_, local_;  // buffers for exchanges between hosts
};

}  // namespace finetune
