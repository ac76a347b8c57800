// Simulates a pipeline's step in virtual time: when each stage works and when it waits.
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

}  // namespace finetune
