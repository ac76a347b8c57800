// Sends tensors over links between processes, from any backend's memory.
#pragma once

#include <memory>

#include "comm/link.h"
#include "ops/backend.h"

namespace finetune {

// Device tensors are staged in host memory: send() waits for the tensor; receive() only enqueues
// the copy to the device.
class TensorLinks {
 public:
  // `backend` must outlive this. most_bytes: of the largest tensor.
  TensorLinks(Backend& backend, size_t most_bytes);

  // The tensors must be contiguous f32. Work that is enqueued on the backend after send() may
  // overwrite `from`; after receive() it may read `into`.
  void send(Link& link, Tensor from, LinkMessage message);
  void receive(Link& link, Tensor into, LinkMessage message);

 private:
  Backend& backend_;
  size_t most_bytes_;
  std::shared_ptr<void> staged_;  // null: host memory backends send directly
};

}  // namespace finetune
