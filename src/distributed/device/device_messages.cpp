// Fills outboxes and sends messages in their order.
#include "distributed/device/device_messages.h"

#include <utility>

#include "core/error.h"

namespace finetune {
namespace {

using Kind = PipelineAction::Kind;

bool is_send(Kind kind) {
  return kind == Kind::send_activation || kind == Kind::send_gradient;
}

int place_of(Kind send) {
  return send == Kind::send_activation ? 0 : 1;
}

bool is_same(const PipelineAction& a, const PipelineAction& b) {
  return a.kind == b.kind && a.micro == b.micro && a.chunk == b.chunk;
}

}  // namespace

DeviceMessages::DeviceMessages(Backend& backend, GroupPeers& stages, Directions out,
                               int64_t most_floats)
    : stages_(stages), copy_(backend), most_floats_(most_floats) {
  const size_t bytes = size_t(most_floats) * sizeof(float);
  if (out.activations) boxes_[0].memory = backend.allocate(bytes);
  if (out.gradients) boxes_[1].memory = backend.allocate(bytes);
}

DeviceMessages::Outbox& DeviceMessages::outbox(const PipelineAction& send) {
  Outbox& box = boxes_[place_of(send.kind)];
  FINETUNE_CHECK(box.memory != nullptr);
  return box;
}

void DeviceMessages::begin(std::vector<PipelineAction> order) {
  FINETUNE_CHECK(next_ == order_.size());
  order_ = std::move(order);
  next_ = 0;
}

void DeviceMessages::send(const PipelineAction& action, Tensor from) {
  FINETUNE_CHECK(from.contiguous() && from.dtype == DType::f32 && from.size() <= most_floats_);
  Outbox& box = outbox(action);
  FINETUNE_CHECK(!box.filled);
  if (box.under_way) wait_for_outboxes();
  copy_(from.f32(), static_cast<float*>(box.memory.get()), from.size());
  stages_.mark(place_of(action.kind));
  box.count = from.size();
  box.filled = true;
  send_filled();
}

// Sends filled outboxes as far as the order allows.
void DeviceMessages::send_filled() {
  for (; next_ < order_.size() && is_send(order_[next_].kind); ++next_) {
    const PipelineAction& action = order_[next_];
    Outbox& box = outbox(action);
    if (!box.filled) return;
    const DevicePeers::Part part{action.peer, static_cast<float*>(box.memory.get()), box.count};
    stages_.beside(place_of(action.kind), [&] { stages_.exchange({&part, 1}, {}, DType::f32); });
    bytes_sent_ += box.count * int64_t(sizeof(float));
    box.filled = false;
    box.under_way = true;
  }
}

void DeviceMessages::receive(const PipelineAction& action, Tensor into) {
  FINETUNE_CHECK(into.contiguous() && into.dtype == DType::f32);
  FINETUNE_CHECK(next_ < order_.size() && is_same(order_[next_], action));
  const DevicePeers::Part part{action.peer, into.f32(), into.size()};
  stages_.exchange({}, {&part, 1}, DType::f32);  // work beside the stream comes first
  for (Outbox& box : boxes_) box.under_way = false;
  ++next_;
  send_filled();
}

void DeviceMessages::wait_for_outboxes() {
  stages_.exchange({}, {}, DType::f32);
  for (Outbox& box : boxes_) box.under_way = false;
}

void DeviceMessages::end() {
  FINETUNE_CHECK(next_ == order_.size());
  wait_for_outboxes();
}

}  // namespace finetune
