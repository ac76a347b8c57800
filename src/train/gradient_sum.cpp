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
  // Which process is on which host, and what every process and host has: the same everywhere.
  std::vector<int32_t> hosts(size_t(comm.size()));
  const int32_t host = comm.host();
  comm.all_gather(&host, sizeof host, hosts.data());
  std::vector<TreeNode> all_nodes;
  nodes_of_host_.assign(size_t(comm.hosts()), 0);
  for (int h = 0, rank = 0; h < comm.hosts(); ++h) {
    std::vector<TreeNode> roots;
    std::vector<int64_t> places;
    int64_t first = 0;
    for (; rank < comm.size() && hosts[size_t(rank)] == h; ++rank) {
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
    root_places_ = places;
    host_additions_ = combined.additions;
    for (int left : combined.left) node_places_.push_back(places[size_t(left)]);
    if (!places.empty()) sum_place_ = places[0];
    const int64_t arenas = std::max<int64_t>(first, 1);  // a host without shards has sums as well
    memory_ = allocate_for_host(backend, comm, size_t(arenas * arena_floats_) * sizeof(float));
  }
  if (comm.hosts() > 1) last_additions_ = combine_nodes(all_nodes, true).additions;
}

float* GradientSum::leaf() {
  return arena(first_place_ + counter_.leaf());
}

std::vector<Addition> GradientSum::shifted(std::span<const TreeAddition> additions,
                                           std::span<const int64_t> places,
                                           int64_t elements) const {
  std::vector<Addition> out;
  for (const TreeAddition& addition : additions) {
    out.push_back({arena(places[size_t(addition.to)]) + elements,
                   arena(places[size_t(addition.from)]) + elements});
  }
  return out;
}

void GradientSum::push(const NeededRows& needed) {
  std::vector<Addition> additions;
  for (const TreeAddition& addition : counter_.push()) {
    additions.push_back({arena(first_place_ + addition.to), arena(first_place_ + addition.from)});
  }
  const int64_t dense = ownership_.dense_elements();
  backend_.merge(additions, dense);
  for (Addition& addition : additions) {
    addition.to += dense;
    addition.from += dense;
  }
  backend_.merge_rows(additions, needed.list({0, INT32_MAX}), ownership_.cols());
}

void GradientSum::merge_here(int owner, const NeededRows& needed) {
  const IndexRange dense = ownership_.dense(owner);
  backend_.merge(shifted(host_additions_, root_places_, dense.begin), dense.size());
  backend_.merge_rows(shifted(host_additions_, root_places_, ownership_.dense_elements()),
                      needed.list(ownership_.rows(owner)), ownership_.cols());
}

void GradientSum::reduce(const NeededRows& needed) {
  counter_.clear();
  backend_.synchronize();
  comm_.host_barrier();  // the host's gradients are there
  if (comm_.local_rank() >= comm_.columns()) return;
  for (int host = 0; host < comm_.hosts(); ++host) {
    merge_here(ownership_.owner(host, comm_.local_rank()), needed);
  }
  if (comm_.hosts() == 1) return;
  add_hosts_dense();
  add_hosts_rows(needed);
}

}  // namespace finetune
