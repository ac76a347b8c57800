// Inputs of layers that wait in memory of the host between their forward and their backward pass.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/numeric/index_range.h"
#include "model/activations.h"
#include "ops/backend.h"

namespace finetune {

// The tensors of an InputRing. As a forward pass has written one, a copy to the host begins; its
// place is taken by another when that is done. A backward pass goes from the last tensor down: as
// many as the ring has places are there or on their way, and with each that is done with the next
// one begins. Copies are beside the backend's other work, which waits where it needs them.
class OffloadedInputs {
 public:
  // Host memory for each tensor of each slot. Error(device) where there is not so much.
  // Backend and ring must outlive this; `block` is where the ring's offsets count from.
  OffloadedInputs(Backend& backend, const InputRing& ring, int64_t slots, float* block);

  // Before a tensor is written in a forward pass; and when it is: `floats` of it.
  void make_room(int64_t tensor);
  void written(int64_t slot, int64_t tensor, int64_t floats);

  // A backward pass over what the slot's forward pass has written: of these tensors, from the last
  // one down, need() each before it is read, done() after.
  void begin(int64_t slot, IndexRange tensors, int64_t floats);
  void need(int64_t tensor);
  void done(int64_t tensor);

 private:
  struct Place {
    int64_t slot = -1, tensor = -1;  // whose it is; -1: nobody's
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
