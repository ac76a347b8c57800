// Forecasts how long a run's steps and evaluations take on this machine. Computes a few of them, on
// the run's own samples and with random weights.
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
  int64_t micro_batch_tokens = 0;  // of evaluation (see evaluation_tokens)
};

// Measures `step`, `evaluation` and `waited`. Takes some seconds and the run's memory.
TimeForecast measure_time_of(TimedRun run, const Workload& work);

}  // namespace finetune
