// Derives the order of messages from a step simulated in virtual time.
#include "distributed/pipeline/message_order.h"

#include <algorithm>

#include "distributed/pipeline/pipeline_simulation.h"

namespace finetune {
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
