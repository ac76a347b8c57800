// Messages between pipeline stages, from device to device. A sent message is copied into an outbox,
// one per direction, so that the stage continues before its receiver is ready. The outbox is sent
// at the message's place in one global order of all stages' messages (message_order.h). So
// exchanges of the same processes never wait for each other in a circle.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "distributed/layout/layout_groups.h"
#include "distributed/pipeline/pipeline_schedule.h"
#include "distributed/touched_rows.h"

namespace finetune {

class DeviceMessages {
 public:
  static constexpr int kPlaces = 2;  // places of GroupPeers::mark: activations, gradients

  // The kinds of messages that this stage sends.
  struct Directions {
    bool activations = false, gradients = false;
    int count() const { return activations + gradients; }
  };
  // For one of `stages` stages with `chunks` chunks each.
  static Directions sent_by(int stage, int stages, int chunks) {
    const bool ring = chunks > 1 && stages > 1;
    return {ring || stage + 1 < stages, ring || stage > 0};
  }

  // `stages` and the backend must outlive this. most_floats: of the largest message.
  DeviceMessages(Backend& backend, GroupPeers& stages, Directions out, int64_t most_floats);

  // `order`: this stage's messages of the step, from message_order(). The previous step must be
  // done.
  void begin(std::vector<PipelineAction> order);
  // Contiguous f32, in the backend's order. After send() `from` may be overwritten; after receive()
  // `into` is filled. Call both in the order of the stage's actions.
  void send(const PipelineAction& action, Tensor from);
  void receive(const PipelineAction& action, Tensor into);
  // Call after all messages of the step are sent and received. The backend's later work waits for
  // them.
  void end();

  // Payload bytes sent by this stage so far.
  int64_t bytes_sent() const { return bytes_sent_; }

  // Floats of memory for the outboxes.
  static int64_t floats(Directions out, int64_t most_floats) { return out.count() * most_floats; }

 private:
  struct Outbox {
    std::shared_ptr<void> memory;
    int64_t count = 0;       // floats of its message
    bool filled = false;     // holds a message not yet sent
    bool under_way = false;  // sent, not known to have arrived
  };

  Outbox& outbox(const PipelineAction& send);
  void send_filled();
  void wait_for_outboxes();

  GroupPeers& stages_;
  DeviceCopy copy_;
  int64_t most_floats_;
  Outbox boxes_[kPlaces];
  std::vector<PipelineAction> order_;
  size_t next_ = 0;
  int64_t bytes_sent_ = 0;
};

}  // namespace finetune
