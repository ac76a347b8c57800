// What all processes add up in a step: losses, square sums of gradient blocks, requests to stop.
// In the order of one process alone, so that loss and norm have the same bits on any number of
// processes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "data/plan.h"
#include "ops/backend.h"
#include "ops/device_peers.h"

namespace finetune {

// What one process adds.
struct StepShare {
  IndexRange shards;            // virtual shards that it computes
  bool has_losses = true;       // false: theirs are another stage's to add
  std::vector<int64_t> blocks;  // of its square sums, each one's number in the whole model
};

class StepTotals {
 public:
  // Collective. `peers`: of devices that exchange directly, or null. The first three must outlive
  // this. All shares together have every shard's loss and every block once.
  StepTotals(Backend& backend, Communicator& comm, DevicePeers* peers, const StepShare& share,
             int64_t virtual_shards, double max_grad_norm);  // 0: no clipping

  // This process's own, in backend memory.
  double* stop_request() const { return sums_of(comm_.rank()); }
  double* losses() const { return stop_request() + 1; }       // of its shards, in their order
  double* squares() const { return losses() + own_shards_; }  // of blocks: of buckets, then of rows

  // Whether all is worked out in the backend's memory.
  bool stay() const { return comm_.size() == 1 || peers_; }
  // If they stay: what came of the step, of its losses' sum divided by `denominator`; in backend
  // memory, and on its way to the host (Backend::finish_download).
  const StepOutcome* work_out(double denominator);
  // Else, collective: the same through the communicator.
  StepOutcome work_out_on_host(double denominator);

 private:
  void lay_out(const StepShare& share);
  double* sums_of(int rank) const { return static_cast<double*>(sums_.get()) + rank * each_; }
  const double* gather();

  Backend& backend_;
  Communicator& comm_;
  DevicePeers* peers_;
  int64_t shards_;
  double max_grad_norm_;
  int64_t own_shards_;
  // Doubles (size, each_): of each process its stop_request, losses, squares. order_: where in them
  // is what one process alone would have; also in backend memory, if it is not the order in which
  // they are.
  int64_t each_ = 0;
  std::vector<int32_t> order_;
  std::shared_ptr<void> sums_, device_order_, ordered_sums_;
  std::shared_ptr<void> outcome_;  // StepOutcome
  std::vector<double> message_, messages_, ordered_;
};

}  // namespace finetune
