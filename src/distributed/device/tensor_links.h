// Tensors over links between processes, whatever memory the backend has.
#pragma once

#include <memory>

#include "comm/link.h"
#include "ops/backend.h"

namespace finetune {

// Of a backend with memory of its own messages are staged in memory of the host: send() waits for
// the tensor, receive() only hands it over.
class TensorLinks {
 public:
  // `backend` must outlive this. most_bytes: of a tensor.
  TensorLinks(Backend& backend, size_t most_bytes);

  // Contiguous f32. When send returns `from` may be overwritten; when receive returns `into` is
  // there in the backend's order.
  void send(Link& link, Tensor from, LinkMessage message);
  void receive(Link& link, Tensor into, LinkMessage message);

 private:
  Backend& backend_;
  size_t most_bytes_;
  std::shared_ptr<void> staged_;  // null: messages go from the backend's memory
};

}  // namespace finetune
