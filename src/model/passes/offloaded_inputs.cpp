// Decides when inputs of layers are copied to the host and back.
#include "model/passes/offloaded_inputs.h"

#include <algorithm>

#include "core/error.h"

namespace finetune {

OffloadedInputs::OffloadedInputs(Backend& backend, const InputRing& ring, int64_t slots,
                                 float* block)
    : ring_(ring),
      block_(block),
      host_(backend.allocate_on_host(size_t(ring.host_floats(slots)) * sizeof(float))),
      copies_(backend.make_host_copies(int(slots * ring.tensors))),
      places_(size_t(ring.places)) {
  FINETUNE_CHECK(copies_ != nullptr);
}

void OffloadedInputs::make_room(int64_t tensor) {
  Place& place = place_of(tensor);
  if (place.slot >= 0) copies_->wait(number_of(place));
  place = {};
}

void OffloadedInputs::written(int64_t slot, int64_t tensor, int64_t floats) {
  Place& place = place_of(tensor);
  place = {slot, tensor, false};
  copies_->store(number_of(place), on_host(place), on_device(tensor),
                 size_t(floats) * sizeof(float));
}

void OffloadedInputs::begin(int64_t slot, IndexRange tensors, int64_t floats) {
  slot_ = slot;
  lowest_ = tensors.begin;
  bytes_ = size_t(floats) * sizeof(float);
  const int64_t last = std::max(tensors.begin, tensors.end - ring_.places);
  for (int64_t tensor = tensors.end; tensor-- > last;) fetch(tensor);
}

// The place's old tensor is on the host already, or its copy is enqueued before this one.
void OffloadedInputs::fetch(int64_t tensor) {
  Place& place = place_of(tensor);
  if (place.slot == slot_ && place.tensor == tensor) return;  // there since its forward pass
  place = {slot_, tensor, true};
  copies_->load(number_of(place), on_device(tensor), on_host(place), bytes_);
}

void OffloadedInputs::need(int64_t tensor) {
  Place& place = place_of(tensor);
  FINETUNE_CHECK(place.slot == slot_ && place.tensor == tensor);
  if (place.loading) copies_->wait(number_of(place));
  place.loading = false;
}

void OffloadedInputs::done(int64_t tensor) {
  const int64_t next = tensor - ring_.places;
  if (next >= lowest_) fetch(next);
}

}  // namespace finetune
