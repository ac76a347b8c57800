// Adds losses, square sums and stop requests of all processes in one fixed order.
#include "distributed/step_totals.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/numeric/tree_sum.h"

namespace finetune {

StepTotals::StepTotals(Backend& backend, Communicator& comm, DevicePeers* peers,
                       const StepShare& share, int64_t virtual_shards, double max_grad_norm)
    : backend_(backend),
      comm_(comm),
      peers_(peers),
      shards_(virtual_shards),
      max_grad_norm_(max_grad_norm),
      own_shards_(share.shards.size()),
      outcome_(backend.allocate(sizeof(StepOutcome))) {
  lay_out(share);
}

// Losses are in the order of shards, square sums in the order of the whole model's arena.
void StepTotals::lay_out(const StepShare& share) {
  struct Sizes {
    int64_t first_shard, shards, has_losses, blocks;
  };
  const int size = comm_.size();
  const Sizes own{share.shards.begin, share.shards.size(), share.has_losses,
                  int64_t(share.blocks.size())};
  std::vector<Sizes> all(static_cast<size_t>(size));
  comm_.all_gather(&own, sizeof own, all.data());
  int64_t most_blocks = 0;
  for (const Sizes& s : all) {
    most_blocks = std::max(most_blocks, s.blocks);
    each_ = std::max(each_, 1 + s.shards + s.blocks);
  }
  std::vector<int64_t> mine = share.blocks, numbers(size_t(size * most_blocks));
  mine.resize(size_t(most_blocks));
  comm_.all_gather(mine.data(), mine.size() * sizeof(int64_t), numbers.data());

  std::vector<int32_t> losses(size_t(shards_), -1);
  std::vector<std::pair<int64_t, int32_t>> blocks;  // block number, index of its sum
  for (int rank = 0; rank < size; ++rank) {
    const Sizes& s = all[size_t(rank)];
    const int64_t at = rank * each_;
    order_.push_back(int32_t(at));
    for (int64_t i = 0; i < s.shards && s.has_losses; ++i) {
      losses.at(size_t(s.first_shard + i)) = int32_t(at + 1 + i);
    }
    for (int64_t i = 0; i < s.blocks; ++i) {
      blocks.emplace_back(numbers[size_t(rank * most_blocks + i)], int32_t(at + 1 + s.shards + i));
    }
  }
  std::sort(blocks.begin(), blocks.end());
  for (int32_t place : losses) {
    FINETUNE_CHECK(place >= 0);
    order_.push_back(place);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    FINETUNE_CHECK(blocks[i].first == int64_t(i));
    order_.push_back(blocks[i].second);
  }
  sums_ = backend_.allocate(size_t(size * each_) * sizeof(double));
  if (!peers_) return;
  const size_t bytes = order_.size() * sizeof(int32_t);
  device_order_ = backend_.allocate(bytes);
  backend_.upload(device_order_.get(), order_.data(), bytes);
  ordered_sums_ = backend_.allocate(order_.size() * sizeof(double));
}

// All-gathers the values from device to device, in order, in backend memory.
const double* StepTotals::gather() {
  if (!peers_) return stop_request();
  // doubles are moved as pairs of floats
  constexpr int64_t kFloats = sizeof(double) / sizeof(float);
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
