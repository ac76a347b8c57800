// A step's totals over all processes: losses, square sums of gradient blocks, stop requests. They
// are added in the order of a single process, so loss and norm have the same bits for any number of
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

// The contribution of one process.
struct StepShare {
  IndexRange shards;            // virtual shards it computes
  bool has_losses = true;       // false: another stage adds these losses
  std::vector<int64_t> blocks;  // number in the whole model of each of its square sums
};

class StepTotals {
 public:
  // Collective. `peers`: directly connected devices, or null. The first three arguments must
  // outlive this. Over all processes' shares, every shard's loss and every block must occur exactly
  // once.
  StepTotals(Backend& backend, Communicator& comm, DevicePeers* peers, const StepShare& share,
             int64_t virtual_shards, double max_grad_norm);  // 0: no clipping

  // Values of this process, in backend memory.
  double* stop_request() const { return sums_of(comm_.rank()); }
  double* losses() const { return stop_request() + 1; }       // by shard
  double* squares() const { return losses() + own_shards_; }  // by block: of buckets, then of rows

  // Returns whether the totals are computed in the backend's memory.
  bool stay() const { return comm_.size() == 1 || peers_; }
  // If stay(): enqueues the computation of the step's outcome, whose loss is the sum of losses
  // divided by `denominator`. The result is in backend memory, and on its way to the host
  // (Backend::finish_download).
  const StepOutcome* work_out(double denominator);
  // If not stay(), collective: the same through the communicator.
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
  // Doubles (size, each_): stop_request, losses and squares of each process. order_ lists the
  // indices in the order of a single process; it is also in backend memory if that order differs.
  int64_t each_ = 0;
  std::vector<int32_t> order_;
  std::shared_ptr<void> sums_, device_order_, ordered_sums_;
  std::shared_ptr<void> outcome_;  // StepOutcome
  std::vector<double> message_, messages_, ordered_;
};

}  // namespace finetune
