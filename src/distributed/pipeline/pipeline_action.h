// A pipeline stage's next action: a pass over a micro-batch, or a message to another stage.
#pragma once

namespace finetune {

struct PipelineAction {
  enum class Kind {
    receive_activation,  // into the slot
    forward,
    send_activation,
    receive_gradient,
    backward,
    send_gradient,
  };

  Kind kind = Kind::forward;
  int micro = 0;
  int chunk = 0;  // index in this stage
  int slot = 0;   // where forward keeps its activations for backward
  int peer = -1;  // the stage at the other end of a message

  friend bool operator==(const PipelineAction&, const PipelineAction&) = default;
};

}  // namespace finetune
