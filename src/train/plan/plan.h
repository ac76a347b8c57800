// Forecasts batches, memory and time of a run of `train` without running it. Data and model are
// read, tokenized and checked as in train. A probe measures the program's own memory at work;
// formulas give the rest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "distributed/layout/layout.h"
#include "train/options/options.h"
#include "train/plan/device_forecast.h"
#include "train/plan/disk_forecast.h"
#include "train/plan/memory_forecast.h"
#include "train/plan/workload.h"
#include "train/run/shared_inputs.h"

namespace finetune {

// The same run with other micro-batches.
struct Alternative {
  int divisor = 1;  // 1: as in the run; 2, 4: half, a quarter of its largest in training
  int64_t micro_batch_tokens = 0;
  int64_t micro_batches = 0;        // with --micro-batches: the run's, twice or four times that
  MemoryForecast kept, recomputed;  // without and with --recompute
  int64_t kept_on_device = 0, recomputed_on_device = 0;  // bytes, with a GPU
};

// The forecast for a run that computes on a GPU.
struct DevicePlan {
  DeviceForecast memory;
  int64_t program = 0;    // bytes that the backend allocates before the run does
  int64_t available = 0;  // bytes for the run and the program together
  bool fits = false;
  int64_t fitting_tokens = 0;             // --micro-batch-tokens that fit; 0: none
  int64_t fitting_tokens_recomputed = 0;  // with --recompute
};

struct TimeForecast {
  double startup = 0;     // seconds, until the first step
  double step = 0;        // the median of the probes
  double evaluation = 0;  // of all evaluation data, once
  double total = 0;       // without writing checkpoints
  // From the fastest probe without waiting for processors to the slowest probe with it.
  double step_low = 0, step_high = 0;
  double total_low = 0, total_high = 0;
  double waited = 0;  // share of the threads' time that they waited for a processor
};

struct RunPlan {
  std::string task, backend;
  int64_t processes = 1, shards = 1;
  std::optional<Layout> layout;  // if a replica has several processes; then time is not measured
  int64_t parameters = 0, samples = 0, eval_samples = 0, batch_size = 0;
  int64_t train_tokens = 0, eval_tokens = 0;
  int64_t micro_batch_tokens = 0;  // with --micro-batches: of evaluation only
  int64_t micro_batches = 0;       // of a shard; 0: --micro-batch-tokens decides
  bool recompute = false;
  std::string recipe;   // the log line with the recipe's choices, or empty
  std::string warning;  // about the schedule, or empty
  Workload work;
  MemoryForecast memory;  // of the host
  DiskForecast disk;
  std::optional<DevicePlan> device;
  // The run's own micro-batches first, then half and a quarter of the largest one in training.
  std::vector<Alternative> alternatives;
  double available_mb = 0;  // free memory of this machine
  bool too_large = false;   // for the machine or the GPU: time is not measured
  bool timed = false, time_wanted = false;
  TimeForecast time;
};

// Throws what train would throw, but does not check --output. `processes`: on one host.
// `measure_time`: computes some steps, which takes the run's memory. Data that `inputs` already has
// is not read again.
RunPlan plan_run(const TrainOptions& options, int64_t processes, bool measure_time,
                 SharedInputs& inputs);

}  // namespace finetune
