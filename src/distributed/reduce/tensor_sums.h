// The sum over tensor shards (model/tensor_sum.h) if several tensor ranks have them: through host
// memory or from device to device, and counted for training. The bits equal those of a single
// process with all shards, however the ranks are placed.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "comm/communicator.h"
#include "core/clock.h"
#include "distributed/layout/layout_groups.h"
#include "model/tensor_sum.h"

namespace finetune {

// Collective. `comm`: the tensor ranks; rank t has shards part(tensor_shards, comm.size(), t).
// most_floats: of a partial sum. The arguments must outlive the sum. comm counts the bytes that
// others receive: shares of its subtrees, and its share of the sum once per receiver. A lost rank
// ends the job, as in any collective.
//
// Each rank has an equal share of the elements. It receives the other ranks' subtrees of its share,
// adds all in the tree's order and sends the sum to all ranks. `peers`: connected devices of the
// same ranks, or null.
std::unique_ptr<TensorSum> make_tensor_sum(Backend& backend, Communicator& comm, GroupPeers* peers,
                                           int64_t tensor_shards, int64_t most_floats);
// Through memory that the ranks of a host share, and between hosts. Error(device) as in
// Communicator::allocate_shared().
std::unique_ptr<TensorSum> make_host_tensor_sum(Communicator& comm, int64_t tensor_shards,
                                                int64_t most_floats);
// Floats of device memory for the sum on one of `ranks` ranks.
int64_t device_tensor_sum_floats(int rank, int ranks, int64_t tensor_shards, int64_t most_floats);

// Counts the bytes and the time of a sum.
class CountedTensorSum final : public TensorSum {
 public:
  // `comm`: the communicator of the tensor ranks, which counts the bytes that `sum` sends. It must
  // outlive this.
  CountedTensorSum(Communicator& comm, std::unique_ptr<TensorSum> sum)
      : comm_(comm), sum_(std::move(sum)) {}

  void add(Backend& backend, std::span<const Tensor> partials) override {
    if (!counting_) return sum_->add(backend, partials);
    const int64_t before = comm_.bytes_sent();
    const double start = seconds_now(Clock::cpu);
    sum_->add(backend, partials);
    bytes_ += comm_.bytes_sent() - before;
    cpu_seconds_ += seconds_now(Clock::cpu) - start;
  }

  // Counting is on at first.
  void set_counting(bool counting) { counting_ = counting; }
  int64_t bytes() const { return bytes_; }             // sent by this rank so far
  double cpu_seconds() const { return cpu_seconds_; }  // of this process, waits included

 private:
  Communicator& comm_;
  std::unique_ptr<TensorSum> sum_;
  bool counting_ = true;
  int64_t bytes_ = 0;
  double cpu_seconds_ = 0;
};

// Turns counting off during its lifetime; null is allowed and does nothing.
class Uncounted {
 public:
  explicit Uncounted(CountedTensorSum* sum) : sum_(sum) {
    if (sum_) sum_->set_counting(false);
  }
  ~Uncounted() {
    if (sum_) sum_->set_counting(true);
  }
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;

 private:
  CountedTensorSum* sum_;
};

}  // namespace finetune
