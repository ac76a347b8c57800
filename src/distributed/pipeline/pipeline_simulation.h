// A pipeline's step in virtual time: when each stage works and when it waits.
#pragma once

#include <functional>
#include <vector>

#include "distributed/pipeline/pipeline_schedule.h"

namespace finetune {

// Seconds of one action of a stage: of a forward or backward pass, and of a message how long it is
// under way (its sender goes on meanwhile). What is received is not asked for.
using ActionSeconds = std::function<double(int stage, const PipelineAction& action)>;

struct PipelineTimes {
  double makespan = 0;
  std::vector<double> busy, idle;  // of each stage, in seconds; their sum is the makespan
  double bubble = 0;               // share of all stages' time in which they do not compute
};

// Told of each message as its receiver takes it, in an order in which that is possible.
using MessageTaken = std::function<void(int stage, const PipelineAction& receive, double time)>;

// Every link has room for one message: a stage that sends waits until the last one was taken. A
// schedule in which somebody waits for ever is a bug.
PipelineTimes simulate(const PipelineShape& shape, const ActionSeconds& seconds,
                       const MessageTaken& taken = {});

}  // namespace finetune
