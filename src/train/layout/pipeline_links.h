// Messages between the stages of a pipeline: activations upwards, gradients downwards. Over links,
// or from device to device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "distributed/device/device_messages.h"
#include "distributed/device/tensor_links.h"
#include "distributed/pipeline/pipeline_schedule.h"
#include "train/stage_passes.h"

namespace finetune {

class PipelineLinks final : public StageLinks {
 public:
  // Collective over the stages of one pipeline; rank p of `stages` is stage p. `stages`, the
  // backend and the peers must outlive this. `shape`: the pipeline; its micro-batches do not
  // matter. With several chunks the last stage also sends to the first. `capacity`: bytes of the
  // largest message. `peers`: the stages' devices if each has its own, or null.
  PipelineLinks(Communicator& stages, Backend& backend, const PipelineShape& shape, size_t capacity,
                GroupPeers* peers = nullptr);

  void begin(int64_t micro_batches) override;
  void end() override;
  void send(const PipelineAction& action, Tensor from) override;
  void receive(const PipelineAction& action, Tensor into) override;
  void advance() override { stages_.advance(); }

  // Payload bytes that this stage has sent so far.
  int64_t bytes_sent() const;

 private:
  Communicator& stages_;
  PipelineShape shape_;
  std::optional<TensorLinks> tensors_;       // without peers
  std::unique_ptr<DeviceMessages> devices_;  // with peers
  std::unique_ptr<Link> activations_out_, activations_in_, gradients_out_, gradients_in_;
};

}  // namespace finetune
