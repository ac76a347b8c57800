// A sum over tensor shards that counts training's bytes and time.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "comm/communicator.h"
#include "core/clock.h"
#include "model/tensor_sum.h"

namespace finetune {

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
