// Simulates a pipeline's step in virtual time: when each stage works and waits, and an order in
// which all messages can pass.
#pragma once

#include <functional>
#include <vector>

#include "distributed/pipeline/pipeline_schedule.h"

namespace finetune {

// Seconds of one action of a stage: of a pass, or of a message's transfer (its sender continues
// meanwhile). Not called for receives.
using ActionSeconds = std::function<double(int stage, const PipelineAction& action)>;

struct PipelineTimes {
  double makespan = 0;
  std::vector<double> busy, idle;  // seconds of each stage; busy + idle is the makespan
  double bubble = 0;               // share of idle time over all stages
};

// Called for each message when it is received, in a valid order.
using MessageTaken = std::function<void(int stage, const PipelineAction& receive, double time)>;

// Every link has room for one message: a sender waits until the previous one is received. A
// schedule that deadlocks is a bug.
PipelineTimes simulate(const PipelineShape& shape, const ActionSeconds& seconds,
                       const MessageTaken& taken = {});

// One global order of all messages in a pipeline's step. Pure function. If stages send one message
// at a time and each waits for its receiver, only such an order avoids a deadlock: in 1f1b,
// neighbours that both send before they receive would wait for each other.
//
// Returns the stage's sends and receives in an order in which all stages' messages can pass one
// after the other, with one outgoing message of each kind buffered per stage. Receives are as in
// pipeline_actions(); a send comes when its receiver has reached it. A stage fills a send's buffer
// before any receive that comes later here, and before the next send of that kind. The slots of
// sends are not set.
std::vector<PipelineAction> message_order(const PipelineShape& shape, int stage);

}  // namespace finetune
