// Messages between the stages of a pipeline over links: activations upwards, gradients downwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "distributed/device/tensor_links.h"
#include "train/stage_passes.h"

namespace finetune {

class PipelineLinks final : public StageLinks {
 public:
  // Collective over the stages of one pipeline, of which rank p is stage p; `stages` and the
  // backend must outlive this. `capacity`: bytes of the largest message. With several chunks the
  // last stage goes on to the first one.
  PipelineLinks(Communicator& stages, Backend& backend, int chunks, size_t capacity);

  void send(const PipelineAction& action, Tensor from) override;
  void receive(const PipelineAction& action, Tensor into) override;
  void advance() override { stages_.advance(); }

  // What this stage has sent so far: payload.
  int64_t bytes_sent() const;

 private:
  Communicator& stages_;
  TensorLinks tensors_;
  std::unique_ptr<Link> activations_out_, activations_in_, gradients_out_, gradients_in_;
};

}  // namespace finetune
