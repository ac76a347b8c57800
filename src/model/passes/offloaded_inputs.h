// Inputs of layers that wait in memory of the host between their forward and their backward pass.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/numeric/index_range.h"
#include "model/activations.h"
#include "ops/backend.h"

namespace finetune {

// Copies an InputRing's tensors. When a forward pass has written a tensor, its copy to the host
// begins; afterwards another tensor may use its place. A backward pass goes from the last tensor
// down: the ring loads as many as it has places, and the next one whenever a tensor is done. Copies
// run beside the backend's other work, which waits for a copy that it needs.
class OffloadedInputs {
 public:
  // Allocates host memory for each tensor of each slot. Error(device): there is not enough.
  // Backend and ring must outlive this. The ring's offsets count from `block`.
  OffloadedInputs(Backend& backend, const InputRing& ring, int64_t slots, float* block);

  // Call make_room() before a forward pass writes a tensor, written() after its `floats` are there.
  void make_room(int64_t tensor);
  void written(int64_t slot, int64_t tensor, int64_t floats);

  // Begins a backward pass over these tensors of the slot's forward pass. From the last tensor down
  // call need() before reading it and done() after.
  void begin(int64_t slot, IndexRange tensors, int64_t floats);
  void need(int64_t tensor);
  void done(int64_t tensor);

 private:
  struct Place {
    int64_t slot = -1, tensor = -1;  // the tensor there; -1: none
    bool loading = false;
  };

  Place& place_of(int64_t tensor) { return places_[size_t(tensor % ring_.places)]; }
  int number_of(const Place& place) const { return int(place.slot * ring_.tensors + place.tensor); }
  float* on_host(const Place& place) const {
    return static_cast<float*>(host_.get()) + number_of(place) * ring_.stride;
  }
  float* on_device(int64_t tensor) const { return block_ + ring_.of(tensor); }
  void fetch(int64_t tensor);

  const InputRing& ring_;
  float* block_;
  std::shared_ptr<void> host_;  // of each slot and tensor, `stride` floats
  std::unique_ptr<HostCopies> copies_;
  std::vector<Place> places_;
  // Of the backward pass under way.
  int64_t slot_ = -1, lowest_ = 0;
  size_t bytes_ = 0;
};

}  // namespace finetune
