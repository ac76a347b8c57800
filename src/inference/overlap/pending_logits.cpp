// Enqueues forward passes and copies their logits to pinned memory, in order.
#include "inference/overlap/pending_logits.h"

#include <algorithm>

#include "core/error.h"
#include "core/switches.h"

namespace finetune {

bool PendingLogits::possible() {
  Backend& backend = engine_.backend();
  if (kBatchesInFlightSwitch.is("1")) return false;
  if (backend.uses_host_memory() || engine_.table().head().kind == HeadKind::masked) return false;
  if (!copies_) copies_ = backend.make_host_copies(int(kMost));
  return copies_ != nullptr;
}

// The next forward pass overwrites the logits, so the device's work waits for the copy. Behind the
// copy a download of one number is queued; the host waits for it, since it arrives after the copy.
void PendingLogits::start(const PackedBatch& batch) {
  FINETUNE_CHECK(count() < kMost);
  Backend& backend = engine_.backend();
  const int number = int(started_ % kMost);
  Place& place = places_[size_t(number)];
  const size_t bytes = size_t(logit_floats(engine_.table().head(), batch)) * sizeof(float);
  FINETUNE_CHECK(bytes > 0);
  if (place.bytes < bytes) {
    place = {};
    place = {backend.allocate_on_host(bytes), bytes};
  }
  const DeviceBatch& computed = engine_.upload_for_inference(batch);
  engine_.infer_chunk(0, computed);
  const Tensor out = engine_.encoder().output_of({0, ChunkSlot::kInference}, computed);
  FINETUNE_CHECK(out.contiguous());
  copies_->store(number, place.memory.get(), out.data, bytes);
  copies_->wait(number);
  backend.start_download(out.data, sizeof(float));
  ++started_;
}

const float* PendingLogits::take() {
  FINETUNE_CHECK(count() > 0);
  const int64_t number = taken_++ % kMost;
  float ignored = 0;
  engine_.backend().finish_download(&ignored, sizeof ignored);
  return static_cast<const float*>(places_[size_t(number)].memory.get());
}

void PendingLogits::drop() {
  while (count() > 0) {
    try {
      take();
    } catch (const std::exception&) {  // the error that ended the evaluation is reported instead
    }
  }
}

}  // namespace finetune
