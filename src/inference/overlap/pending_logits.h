// Micro-batches in flight on a device: while it computes one, the host packs the next and counts
// the results of the one before.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "core/numeric/packed_batch.h"
#include "engine/engine.h"
#include "ops/host_copies.h"

namespace finetune {

class PendingLogits {
 public:
  // `engine` must outlive this.
  explicit PendingLogits(Engine& engine) : engine_(engine) {}

  // Whether work can be in flight: only on a device and not for a masked head, whose logits are
  // scored first. FINETUNE_BATCHES_IN_FLIGHT=1 forbids it.
  bool possible();
  // Micro-batches whose logits have not been taken.
  int64_t count() const { return started_ - taken_; }
  static constexpr int64_t kMost = 2;

  // Enqueues a micro-batch; `batch` may change once this returns. At most kMost may be in flight.
  void start(const PackedBatch& batch);
  // Waits for the oldest micro-batch. The logits are valid until the next start().
  const float* take();
  // Waits for all of them and ignores their results and errors.
  void drop();

 private:
  struct Place {
    std::shared_ptr<void> memory;  // pinned
    size_t bytes = 0;
  };

  Engine& engine_;
  std::unique_ptr<HostCopies> copies_;
  std::array<Place, kMost> places_;
  int64_t started_ = 0, taken_ = 0;
};

}  // namespace finetune
