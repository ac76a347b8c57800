// A forecast of how long a run's steps and evaluations take here.
// A few are computed, on the run's own samples and with random weights.
#pragma once

#include <memory>

#include "tasks/task.h"
#include "train/plan/plan.h"

namespace finetune {

struct TimedRun {
  const TrainOptions& options;  // as resolved
  std::unique_ptr<Backend> backend;
  const EncoderConfig& config;
  Task& task;
  int64_t micro_batch_tokens = 0;  // of evaluation, as evaluation_tokens takes it
};

// The times of a step and of an evaluation, and `waited`; takes some seconds and the run's memory.
TimeForecast measure_time_of(TimedRun run, const Workload& work);

}  // namespace finetune
