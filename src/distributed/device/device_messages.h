// Messages between the stages of a pipeline, from device to device.
// What is sent is copied into an outbox, of which there is one a direction, so that the stage goes
// on before its receiver is ready. The outbox goes out, beside other work, at the message's place
// in one order of all stages' messages (message_order.h): whatever else the same processes exchange
// in the order of their passes, nobody waits for who waits for him.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "distributed/device/device_copy.h"
#include "distributed/device/layout_peers.h"
#include "distributed/pipeline/pipeline_action.h"

namespace finetune {

class DeviceMessages {
 public:
  static constexpr int kPlaces = 2;  // of GroupPeers::mark: activations, gradients

  // Which messages this stage sends, ever.
  struct Directions {
    bool activations = false, gradients = false;
    int count() const { return activations + gradients; }
  };
  // Of a stage of so many, each with so many chunks.
  static Directions sent_by(int stage, int stages, int chunks) {
    const bool ring = chunks > 1 && stages > 1;
    return {ring || stage + 1 < stages, ring || stage > 0};
  }

  // `stages` and the backend must outlive this. most_floats: of a message.
  DeviceMessages(Backend& backend, GroupPeers& stages, Directions out, int64_t most_floats);

  // `order`: of the step's messages of this stage, from message_order(). The last ones are done.
  void begin(std::vector<PipelineAction> order);
  // Contiguous f32. When send returns `from` may be overwritten, when receive returns `into` is
  // there, in the backend's order. Both are called in the order of the stage's actions.
  void send(const PipelineAction& action, Tensor from);
  void receive(const PipelineAction& action, Tensor into);
  // All messages of the step have been called for. The backend's work from here on comes when all
  // of them are done.
  void end();

  // This stage's payload so far.
  int64_t bytes_sent() const { return bytes_sent_; }

  // Memory of its outboxes, in floats.
  static int64_t floats(Directions out, int64_t most_floats) { return out.count() * most_floats; }

 private:
  struct Outbox {
    std::shared_ptr<void> memory;
    int64_t count = 0;       // floats of the message in it
    bool filled = false;     // a message that has not gone out
    bool under_way = false;  // it has, and nobody knows to have waited for its end
  };

  Outbox& outbox(const PipelineAction& send);
  void send_filled();
  void wait_for_outboxes();

  Backend& backend_;
  GroupPeers& stages_;
  DeviceCopy copy_;
  int64_t most_floats_;
  Outbox boxes_[kPlaces];
  std::vector<PipelineAction> order_;
  size_t next_ = 0;
  int64_t bytes_sent_ = 0;
};

}  // namespace finetune
