#include "train/node_sum.h"

#include <algorithm>
#include <numeric>

#include "train/host_memory.h"
#include "train/shard_sum.h"

namespace finetune {

ProcessArenas arenas_of_shards(IndexRange shards) {
  TreeCounter counter(shards);
  for (int64_t leaf = shards.begin; leaf < shards.end; ++leaf) {
    counter.leaf();
    counter.push();
  }
  return {ShardSum::arenas_needed(shards), counter.places()};
}

ProcessArenas arenas_of_nodes(IndexRange shards) {
  ProcessArenas arenas;
  arenas.nodes.resize(subtrees(shards).size());
  std::iota(arenas.nodes.begin(), arenas.nodes.end(), 0);
  arenas.count = int64_t(arenas.nodes.size());
  return arenas;
}

NodeSum::NodeSum(Backend& backend, Communicator& comm, const Ownership& ownership, int64_t elements,
                 int64_t shards, ProcessArenas (*arenas_of)(IndexRange))
    : backend_(backend),
      comm_(comm),
      ownership_(ownership),
      arena_floats_((elements + 15) / 16 * 16) {
  // What every process and host has: the same everywhere.
  std::vector<TreeNode> all_nodes;
  nodes_of_host_.assign(size_t(comm.hosts()), 0);
  for (int h = 0; h < comm.hosts(); ++h) {
    std::vector<TreeNode> roots;
    std::vector<int64_t> places;
    int64_t first = 0;
    for (int rank = comm.first_rank(h); rank < comm.first_rank(h + 1); ++rank) {
      const IndexRange range = part(shards, comm.size(), rank);
      if (rank == comm.rank()) first_place_ = first;
      const ProcessArenas arenas = arenas_of(range);
      for (TreeNode node : subtrees(range)) roots.push_back(node);
      for (int place : arenas.nodes) places.push_back(first + place);
      first += arenas.count;
    }
    const TreeCombination combined = combine_nodes(roots, comm.hosts() == 1);
    nodes_of_host_[size_t(h)] = int(combined.nodes.size());
    all_nodes.insert(all_nodes.end(), combined.nodes.begin(), combined.nodes.end());
    if (h != comm.host()) continue;
    for (int left : combined.left) node_places_.push_back(places[size_t(left)]);
    if (!places.empty()) sum_place_ = places[0];
    const int64_t arenas = std::max<int64_t>(first, 1);  // a host without shards has sums as well
    memory_ = allocate_for_host(backend, comm, size_t(arenas * arena_floats_) * sizeof(float));
    for (const TreeAddition& a : combined.additions) {
      host_additions_.push_back({at(places[size_t(a.to)]), at(places[size_t(a.from)])});
    }
  }
  if (comm.hosts() > 1) last_additions_ = combine_nodes(all_nodes, true).additions;
}

RowList NodeSum::rows_of(int owner, const NeededRows& needed) const {
  const IndexRange rows = ownership_.rows(owner);
  return backend_.uses_host_memory() ? needed.list_on_host(rows) : needed.list(rows);
}

void NodeSum::reduce(const NeededRows& needed) {
  if (comm_.size() > 1) {
    backend_.synchronize();
    comm_.host_barrier();  // the host's gradients are there
  }
  if (comm_.local_rank() >= comm_.columns()) return;
  for (int host = 0; host < comm_.hosts(); ++host) {
    const int owner = ownership_.owner(host, comm_.local_rank());
    add_arenas(backend_, ownership_, host_additions_, ownership_.dense(owner),
               rows_of(owner, needed));
  }
  if (comm_.hosts() == 1) return;
  add_hosts_dense();
  add_hosts_rows(needed);
}

}  // namespace finetune
