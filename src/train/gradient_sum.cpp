#include "train/gradient_sum.h"

#include <algorithm>

#include "core/error.h"

namespace finetune {

NeededRows::NeededRows(Backend& backend, int64_t rows)
    : backend_(backend),
      is_needed_(size_t(rows), false),
      device_(backend.allocate(size_t(rows) * sizeof(int32_t))) {
  rows_.reserve(size_t(rows));
}

void NeededRows::clear() {
  for (int32_t row : rows_) is_needed_[size_t(row)] = false;
  rows_.clear();
}

void NeededRows::add(std::span<const int32_t> ids) {
  for (int32_t row : ids) {
    FINETUNE_CHECK(row >= 0 && size_t(row) < is_needed_.size());
    if (is_needed_[size_t(row)]) continue;
    is_needed_[size_t(row)] = true;
    rows_.push_back(row);
  }
}

void NeededRows::complete() {
  std::sort(rows_.begin(), rows_.end());
  backend_.upload(device_.get(), rows_.data(), rows_.size() * sizeof(int32_t));
}

std::span<const int32_t> NeededRows::within(IndexRange rows) const {
  auto begin = std::lower_bound(rows_.begin(), rows_.end(), rows.begin);
  return {begin, std::lower_bound(begin, rows_.end(), rows.end)};
}

RowList NeededRows::list(IndexRange rows) const {
  const std::span<const int32_t> found = within(rows);
  const int64_t begin = found.empty() ? 0 : found.data() - rows_.data();
  return {static_cast<const int32_t*>(device_.get()) + begin, int64_t(found.size())};
}

GradientSum::GradientSum(Backend& backend, Communicator& comm, const Ownership& ownership,
                         int64_t elements, int64_t shards)
    : backend_(backend),
      comm_(comm),
      ownership_(ownership),
      arena_floats_((elements + 15) / 16 * 16),
      shards_(part(shards, comm.size(), comm.rank())),
      counter_(shards_) {
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
      TreeCounter counter(range);
      for (int64_t leaf = range.begin; leaf < range.end; ++leaf) {
        counter.leaf();
        counter.push();
      }
      for (TreeNode node : subtrees(range)) roots.push_back(node);
      for (int place : counter.places()) places.push_back(first + place);
      first += TreeCounter::places_needed(range);
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
      host_additions_.push_back({arena(places[size_t(a.to)]), arena(places[size_t(a.from)])});
    }
  }
  if (comm.hosts() > 1) last_additions_ = combine_nodes(all_nodes, true).additions;
}

float* GradientSum::leaf() {
  return arena(first_place_ + counter_.leaf());
}

void GradientSum::add(std::span<const Addition> arenas, IndexRange dense, RowList rows) {
  auto at = [&](int64_t element) {
    std::vector<Addition> out;
    for (const Addition& a : arenas) out.push_back({a.to + element, a.from + element});
    return out;
  };
  backend_.merge(at(dense.begin), dense.size());
  backend_.merge_rows(at(ownership_.dense_elements()), rows, ownership_.cols());
}

void GradientSum::push(const NeededRows& needed) {
  std::vector<Addition> additions;
  for (const TreeAddition& a : counter_.push()) {
    additions.push_back({arena(first_place_ + a.to), arena(first_place_ + a.from)});
  }
  add(additions, {0, ownership_.dense_elements()}, needed.list({0, INT32_MAX}));
}

void GradientSum::reduce(const NeededRows& needed) {
  counter_.clear();
  backend_.synchronize();
  comm_.host_barrier();  // the host's gradients are there
  if (comm_.local_rank() >= comm_.columns()) return;
  for (int host = 0; host < comm_.hosts(); ++host) {
    const int owner = ownership_.owner(host, comm_.local_rank());
    add(host_additions_, ownership_.dense(owner), needed.list(ownership_.rows(owner)));
  }
  if (comm_.hosts() == 1) return;
  add_hosts_dense();
  add_hosts_rows(needed);
}

}  // namespace finetune
