// Stages device tensors in host memory to send them over a link.
#include "distributed/device/tensor_links.h"

#include "core/error.h"

namespace finetune {
namespace {

size_t link_bytes(Tensor tensor) {
  FINETUNE_CHECK(tensor.contiguous() && tensor.dtype == DType::f32);
  return size_t(tensor.size()) * sizeof(float);
}

}  // namespace

TensorLinks::TensorLinks(Backend& backend, size_t most_bytes)
    : backend_(backend), most_bytes_(most_bytes) {
  if (!backend.uses_host_memory()) staged_ = backend.allocate_on_host(most_bytes);
}

void TensorLinks::send(Link& link, Tensor from, LinkMessage message) {
  const size_t bytes = link_bytes(from);
  FINETUNE_CHECK(bytes <= most_bytes_);
  if (!staged_) return link.send(from.data, bytes, message);
  backend_.download(staged_.get(), from.data, bytes);
  link.send(staged_.get(), bytes, message);
}

void TensorLinks::receive(Link& link, Tensor into, LinkMessage message) {
  const size_t bytes = link_bytes(into);
  FINETUNE_CHECK(bytes <= most_bytes_);
  if (!staged_) return link.receive(into.data, bytes, message);
  link.receive(staged_.get(), bytes, message);
  backend_.upload(into.data, staged_.get(), bytes);
}

}  // namespace finetune
