// What a stage of a pipeline does next: a pass over a micro-batch, or a message to another stage.
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
  int chunk = 0;  // of this stage
  int slot = 0;   // what forward keeps for backward lies there
  int peer = -1;  // stage at the other end of a message

  friend bool operator==(const PipelineAction&, const PipelineAction&) = default;
};

}  // namespace finetune
