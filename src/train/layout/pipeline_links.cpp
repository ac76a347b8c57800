// Makes a stage's links to its neighbours, and names their messages.
#include "train/layout/pipeline_links.h"

#include "core/error.h"
#include "distributed/pipeline/pipeline_simulation.h"

namespace finetune {
namespace {

LinkMessage message_of(const PipelineAction& action) {
  const bool upwards = action.kind == PipelineAction::Kind::send_activation ||
                       action.kind == PipelineAction::Kind::receive_activation;
  return {upwards ? "activations of micro-batch" : "gradients of micro-batch", action.micro};
}

}  // namespace

PipelineLinks::PipelineLinks(Communicator& stages, Backend& backend, const PipelineShape& shape,
                             size_t capacity, GroupPeers* peers)
    : stages_(stages), shape_(shape) {
  const int p = stages.size(), self = stages.rank();
  const int pairs = shape.chunks > 1 ? p : p - 1;
  if (peers) {
    devices_ = std::make_unique<DeviceMessages>(backend, *peers,
                                                DeviceMessages::sent_by(self, p, shape.chunks),
                                                int64_t(capacity / sizeof(float)));
    return;
  }
  tensors_.emplace(backend, capacity);
  std::vector<LinkEnds> ends;
  for (int s = 0; s < pairs; ++s) {
    const int next = (s + 1) % p;
    ends.push_back({s, next, capacity});
    ends.push_back({next, s, capacity});
  }
  auto links = stages.make_links(ends);
  for (int s = 0; s < pairs; ++s) {
    auto& up = links[2 * size_t(s)];
    auto& down = links[2 * size_t(s) + 1];
    if (s == self) {
      activations_out_ = std::move(up);
      gradients_in_ = std::move(down);
    } else if ((s + 1) % p == self) {
      activations_in_ = std::move(up);
      gradients_out_ = std::move(down);
    }
  }
}

void PipelineLinks::begin(int64_t micro_batches) {
  if (!devices_) return;
  shape_.micro_batches = int(micro_batches);
  devices_->begin(message_order(shape_, stages_.rank()));
}

void PipelineLinks::end() {
  if (devices_) devices_->end();
}

void PipelineLinks::send(const PipelineAction& action, Tensor from) {
  if (devices_) return devices_->send(action, from);
  const bool upwards = action.kind == PipelineAction::Kind::send_activation;
  Link* link = (upwards ? activations_out_ : gradients_out_).get();
  FINETUNE_CHECK(link != nullptr);
  tensors_->send(*link, from, message_of(action));
}

void PipelineLinks::receive(const PipelineAction& action, Tensor into) {
  if (devices_) return devices_->receive(action, into);
  const bool upwards = action.kind == PipelineAction::Kind::receive_activation;
  Link* link = (upwards ? activations_in_ : gradients_in_).get();
  FINETUNE_CHECK(link != nullptr);
  tensors_->receive(*link, into, message_of(action));
}

int64_t PipelineLinks::bytes_sent() const {
  if (devices_) return devices_->bytes_sent();
  int64_t bytes = 0;
  for (const Link* link : {activations_out_.get(), gradients_out_.get()}) {
    if (link) bytes += link->bytes_sent();
  }
  return bytes;
}

}  // namespace finetune
