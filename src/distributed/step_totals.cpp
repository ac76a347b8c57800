// Adds up losses, square sums and stop requests of all processes in one fixed order.
#include "distributed/step_totals.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "data/plan.h"
#include "distributed/reduce/tree_reduce.h"

namespace finetune {

StepTotals::StepTotals(Backend& backend, Communicator& comm, DevicePeers* peers,
                       const ZeroPartition& partition, int64_t virtual_shards, double max_grad_norm)
    : backend_(backend),
      comm_(comm),
      peers_(peers),
      shards_(virtual_shards),
      max_grad_norm_(max_grad_norm),
      own_shards_(part(virtual_shards, comm.size(), comm.rank()).size()),
      outcome_(backend.allocate(sizeof(StepOutcome))) {
  lay_out(partition);
}

// Of shards in their order; of blocks in the arena's: of the buckets one after the other, of each
// from its owners in turn, then of rows.
void StepTotals::lay_out(const ZeroPartition& partition) {
  const int size = comm_.size();
  std::vector<int32_t> next(size_t(size), 0);  // of each process
  std::vector<std::pair<int, int32_t>> order;  // process, which of its sums
  const auto take = [&](int rank, int64_t count) {
    for (int64_t i = 0; i < count; ++i) order.emplace_back(rank, next[size_t(rank)]++);
  };
  const auto take_from_owners = [&](auto&& blocks_of) {
    for (int owner = 0; owner < partition.owners(); ++owner) {
      const int host = owner / comm_.columns(), column = owner % comm_.columns();
      take(comm_.first_rank(host) + column, blocks_of(owner));
    }
  };
  for (int rank = 0; rank < size; ++rank) take(rank, 1);
  for (int rank = 0; rank < size; ++rank) {
    take(rank, part(shards_, size, rank).size());
  }
  for (int bucket = 0; bucket < partition.buckets(); ++bucket) {
    take_from_owners([&](int owner) { return partition.dense_blocks(owner, bucket); });
  }
  take_from_owners([&](int owner) { return partition.row_blocks(owner); });

  each_ = *std::max_element(next.begin(), next.end());
  for (const auto& [rank, sum] : order) order_.push_back(int32_t(rank * each_ + sum));
  sums_ = backend_.allocate(size_t(size * each_) * sizeof(double));
  if (!peers_) return;
  const size_t bytes = order_.size() * sizeof(int32_t);
  device_order_ = backend_.allocate(bytes);
  backend_.upload(device_order_.get(), order_.data(), bytes);
  ordered_sums_ = backend_.allocate(order_.size() * sizeof(double));
}

// Everybody's to everybody, from device to device: in order, in backend memory.
const double* StepTotals::gather() {
  if (!peers_) return stop_request();
  constexpr int64_t kFloats = sizeof(double) / sizeof(float);  // they are moved, no more
  const auto floats = [&](double* sums) { return reinterpret_cast<float*>(sums); };
  std::vector<DevicePeers::Part> out, in;
  for (int rank = 0; rank < comm_.size(); ++rank) {
    if (rank == comm_.rank()) continue;
    out.push_back({rank, floats(stop_request()), each_ * kFloats});
    in.push_back({rank, floats(sums_of(rank)), each_ * kFloats});
  }
  peers_->exchange(out, in);
  auto* ordered = static_cast<double*>(ordered_sums_.get());
  backend_.gather_rows(matrix(floats(sums_of(0)), comm_.size() * each_, kFloats),
                       static_cast<const int32_t*>(device_order_.get()),
                       matrix(floats(ordered), int64_t(order_.size()), kFloats));
  return ordered;
}

const StepOutcome* StepTotals::work_out(double denominator) {
  auto* outcome = static_cast<StepOutcome*>(outcome_.get());
  StepSums all;
  all.processes = comm_.size();
  all.shards = shards_;
  all.blocks = int64_t(order_.size()) - all.processes - all.shards;
  all.stop_requests = gather();
  all.losses = all.stop_requests + all.processes;
  all.squares = all.losses + all.shards;
  all.denominator = denominator;
  all.max_norm = max_grad_norm_;
  backend_.step_outcome(all, outcome);
  backend_.start_download(outcome, sizeof *outcome);
  return outcome;
}

StepOutcome StepTotals::work_out_on_host(double denominator) {
  const size_t bytes = size_t(each_) * sizeof(double);
  message_.resize(size_t(each_));
  backend_.download(message_.data(), stop_request(), bytes);
  messages_.resize(size_t(each_ * comm_.size()));
  comm_.all_gather(message_.data(), bytes, messages_.data());
  ordered_.clear();
  for (int32_t i : order_) ordered_.push_back(messages_[size_t(i)]);
  const std::span all(ordered_);
  const auto processes = size_t(comm_.size()), shards = size_t(shards_);
  return StepOutcome::of(tree_sum(all.subspan(processes, shards)) / denominator,
                         std::sqrt(tree_sum(all.subspan(processes + shards))), max_grad_norm_,
                         all.data(), comm_.size());
}

}  // namespace finetune
