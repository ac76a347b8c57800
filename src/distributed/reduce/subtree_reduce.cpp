// Each owner adds its part of all subtrees' gradients in the tree's order.
#include "distributed/reduce/subtree_reduce.h"

#include <algorithm>
#include <numeric>

#include "distributed/reduce/local_reduce.h"
#include "engine/host_memory.h"

namespace finetune {

ProcessArenas arenas_of_shards(IndexRange shards) {
  TreeCounter counter(shards);
  for (int64_t leaf = shards.begin; leaf < shards.end; ++leaf) {
    counter.leaf();
    counter.push();
  }
  return {LocalReduce::arenas_needed(shards), counter.slots()};
}

ProcessArenas arenas_of_subtrees(IndexRange shards) {
  ProcessArenas arenas;
  arenas.subtrees.resize(subtrees_of(shards).size());
  std::iota(arenas.subtrees.begin(), arenas.subtrees.end(), 0);
  arenas.count = int64_t(arenas.subtrees.size());
  return arenas;
}

SubtreeReduce::SubtreeReduce(Backend& backend, Communicator& comm, const ZeroPartition& partition,
                             int64_t elements, int64_t shards,
                             ProcessArenas (*arenas_of)(IndexRange))
    : backend_(backend),
      comm_(comm),
      partition_(partition),
      arena_floats_((elements + 15) / 16 * 16) {
  // The subtrees of every process and host; computed identically everywhere.
  std::vector<Subtree> all_subtrees;
  subtrees_of_host_.assign(size_t(comm.hosts()), 0);
  for (int h = 0; h < comm.hosts(); ++h) {
    std::vector<Subtree> roots;
    std::vector<int64_t> places;
    int64_t first = 0;
    for (int rank = comm.first_rank(h); rank < comm.first_rank(h + 1); ++rank) {
      const IndexRange range = part(shards, comm.size(), rank);
      if (rank == comm.rank()) first_slot_ = first;
      const ProcessArenas arenas = arenas_of(range);
      for (Subtree subtree : subtrees_of(range)) roots.push_back(subtree);
      if (rank == comm.rank()) own_subtrees_ = int64_t(arenas.subtrees.size());
      for (int place : arenas.subtrees) places.push_back(first + place);
      first += arenas.count;
    }
    const TreeCombination combined = combine_subtrees(roots, comm.hosts() == 1);
    subtrees_of_host_[size_t(h)] = int(combined.subtrees.size());
    all_subtrees.insert(all_subtrees.end(), combined.subtrees.begin(), combined.subtrees.end());
    if (h != comm.host()) continue;
    for (int left : combined.left) subtree_slots_.push_back(places[size_t(left)]);
    if (!places.empty()) sum_slot_ = places[0];
    // a host without shards needs memory for sums too
    const int64_t arenas = std::max<int64_t>(first, 1);
    memory_ = allocate_for_host(backend, comm, size_t(arenas * arena_floats_) * sizeof(float));
    for (const TreeAddition& a : combined.additions) {
      host_additions_.push_back({at(places[size_t(a.to)]), at(places[size_t(a.from)])});
    }
  }
  if (comm.hosts() > 1) last_additions_ = combine_subtrees(all_subtrees, true).additions;
}

RowList SubtreeReduce::rows_of(int owner, const TouchedRows& touched) const {
  const IndexRange rows = partition_.rows(owner);
  return backend_.uses_host_memory() ? touched.list_on_host(rows) : touched.list(rows);
}

// Counts what others of this host read of this process's subtrees, including what they read for
// other hosts.
void SubtreeReduce::count_handed_on(const TouchedRows& touched) {
  int64_t elements = 0;
  for (int column = 0; column < comm_.columns(); ++column) {
    if (column == comm_.local_rank()) continue;
    for (int host = 0; host < comm_.hosts(); ++host) {
      const int owner = partition_.owner(host, column);
      elements += partition_.dense(owner).size() +
                  int64_t(touched.within(partition_.rows(owner)).size()) * partition_.cols();
    }
  }
  comm_.count_sent(own_subtrees_ * elements * int64_t(sizeof(float)));
}

void SubtreeReduce::reduce_scatter(const TouchedRows& touched) {
  if (comm_.size() > 1) {
    backend_.synchronize();
    comm_.host_barrier();  // the gradients of all processes of the host are ready
    count_handed_on(touched);
  }
  if (comm_.local_rank() >= comm_.columns()) return;
  for (int host = 0; host < comm_.hosts(); ++host) {
    const int owner = partition_.owner(host, comm_.local_rank());
    add_arenas(backend_, partition_, host_additions_, partition_.dense(owner),
               rows_of(owner, touched));
  }
  if (comm_.hosts() == 1) return;
  add_hosts_dense();
  add_hosts_rows(touched);
}

}  // namespace finetune
