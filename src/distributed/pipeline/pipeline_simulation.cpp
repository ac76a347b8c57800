// Advances all stages in turn as far as possible until they are done.
#include "distributed/pipeline/pipeline_simulation.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace finetune {
namespace {

using Kind = PipelineAction::Kind;

// A channel to a neighbour stage, for activations or gradients.
struct Channel {
  bool full = false;
  int micro = 0, block = 0;  // of the receiver
  double arrival = 0;
  double taken = 0;  // when the last message was received
};

struct StageState {
  std::vector<PipelineAction> actions;
  size_t next = 0;
  double now = 0, busy = 0;
};

class Simulation {
 public:
  Simulation(const PipelineShape& shape, const ActionSeconds& seconds, const MessageTaken& taken)
      : shape_(shape),
        seconds_(seconds),
        taken_(taken),
        stages_(size_t(shape.stages)),
        activations_(size_t(shape.stages)),
        gradients_(size_t(shape.stages)) {
    for (int s = 0; s < shape.stages; ++s) stages_[size_t(s)].actions = pipeline_actions(shape, s);
  }

  PipelineTimes run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (int s = 0; s < shape_.stages; ++s) {
        StageState& stage = stages_[size_t(s)];
        while (stage.next < stage.actions.size() && can_do(s, stage.actions[stage.next])) {
          ++stage.next;
          progress = true;
        }
      }
    }
    return times();
  }

 private:
  // Returns false if the action must wait for another stage.
  bool can_do(int s, const PipelineAction& action) {
    const int block = action.chunk * shape_.stages + s;
    switch (action.kind) {
      case Kind::forward:
      case Kind::backward: {
        const double seconds = seconds_(s, action);
        stages_[size_t(s)].now += seconds;
        stages_[size_t(s)].busy += seconds;
        return true;
      }
      case Kind::send_activation:
        return send(activations_[size_t(s)], s, action, block + 1);
      case Kind::send_gradient:
        return send(gradients_[size_t(s)], s, action, block - 1);
      case Kind::receive_activation:
        return receive(activations_[size_t(action.peer)], s, action, block);
      case Kind::receive_gradient:
        return receive(gradients_[size_t(action.peer)], s, action, block);
    }
    return false;
  }

  bool send(Channel& channel, int s, const PipelineAction& action, int to_block) {
    if (channel.full) return false;
    double& now = stages_[size_t(s)].now;
    now = std::max(now, channel.taken);
    channel = {true, action.micro, to_block, now + seconds_(s, action), channel.taken};
    return true;
  }

  bool receive(Channel& channel, int s, const PipelineAction& action, int block) {
    if (!channel.full) return false;
    FINETUNE_CHECK(channel.micro == action.micro && channel.block == block);
    double& now = stages_[size_t(s)].now;
    now = std::max(now, channel.arrival);
    channel.taken = now;
    channel.full = false;
    if (taken_) taken_(s, action, now);
    return true;
  }

  PipelineTimes times() const {
    PipelineTimes times;
    for (const StageState& stage : stages_) {
      FINETUNE_CHECK(stage.next == stage.actions.size());
      times.makespan = std::max(times.makespan, stage.now);
      times.busy.push_back(stage.busy);
    }
    for (double busy : times.busy) times.idle.push_back(times.makespan - busy);
    const double all = times.makespan * double(stages_.size());
    const double idle = std::accumulate(times.idle.begin(), times.idle.end(), 0.0);
    times.bubble = all > 0 ? idle / all : 0;
    return times;
  }

  const PipelineShape& shape_;
  const ActionSeconds& seconds_;
  const MessageTaken& taken_;
  std::vector<StageState> stages_;
  std::vector<Channel> activations_, gradients_;  // by sending stage
};

}  // namespace

PipelineTimes simulate(const PipelineShape& shape, const ActionSeconds& seconds,
                       const MessageTaken& taken) {
  return Simulation(shape, seconds, taken).run();
}

namespace {

using Kind = PipelineAction::Kind;

struct Message {
  double time;
  int to;
  PipelineAction receive;
};

// Pass times only affect how long stages wait, not the result's validity.
double pass_seconds(int, const PipelineAction& action) {
  return action.kind == Kind::forward ? 1 : action.kind == Kind::backward ? 2 : 0;
}

// The sender's action for a received message.
PipelineAction send_of(const PipelineShape& shape, const Message& message) {
  const PipelineAction& receive = message.receive;
  const bool upwards = receive.kind == Kind::receive_activation;
  const int block = receive.chunk * shape.stages + message.to + (upwards ? -1 : 1);
  PipelineAction send;
  send.kind = upwards ? Kind::send_activation : Kind::send_gradient;
  send.micro = receive.micro;
  send.chunk = block / shape.stages;
  send.peer = message.to;
  return send;
}

}  // namespace

std::vector<PipelineAction> message_order(const PipelineShape& shape, int stage) {
  std::vector<Message> all;
  simulate(shape, pass_seconds, [&](int to, const PipelineAction& receive, double time) {
    all.push_back({time, to, receive});
  });
  // At equal times, messages that depend on another one come after it.
  std::stable_sort(all.begin(), all.end(),
                   [](const Message& a, const Message& b) { return a.time < b.time; });
  std::vector<PipelineAction> own;
  for (const Message& message : all) {
    if (message.to == stage) own.push_back(message.receive);
    if (message.receive.peer == stage) own.push_back(send_of(shape, message));
  }
  return own;
}

}  // namespace finetune
