// What a run of `train` will take: its batches, its memory and its time, without running it. Data
// and model are read, tokenized and checked as train does it. What the program takes at work is
// measured by a memory probe, all else follows by formula.
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
  int64_t micro_batches = 0;  // where --micro-batches decides: the run's, twice and four times that
  MemoryForecast kept, recomputed;                       // without and with --recompute
  int64_t kept_on_device = 0, recomputed_on_device = 0;  // bytes, where there is a GPU
};

// Where the run computes on a GPU.
struct DevicePlan {
  DeviceForecast memory;
  int64_t program = 0;    // bytes: what the backend has allocated before the run does
  int64_t available = 0;  // bytes, of the run and the program
  bool fits = false;
  int64_t fitting_tokens = 0;             // --micro-batch-tokens that would; 0: none
  int64_t fitting_tokens_recomputed = 0;  // with --recompute
};

struct TimeForecast {
  double startup = 0;     // seconds, until the first step
  double step = 0;        // the median of the probes
  double evaluation = 0;  // one over all evaluation data
  double total = 0;       // without writing checkpoints
  // The fastest probe without its waiting for processors, and the slowest one with it.
  double step_low = 0, step_high = 0;
  double total_low = 0, total_high = 0;
  double waited = 0;  // share of the threads' time in which other programs had their processors
};

struct RunPlan {
  std::string task, backend;
  int64_t processes = 1, shards = 1;
  std::optional<Layout> layout;  // where a replica has several processes: no time is measured
  int64_t parameters = 0, samples = 0, eval_samples = 0, batch_size = 0;
  int64_t train_tokens = 0, eval_tokens = 0;
  int64_t micro_batch_tokens = 0;  // with --micro-batches of evaluation alone
  int64_t micro_batches = 0;       // of a shard; 0: by their tokens
  bool recompute = false;
  std::string recipe;   // the line of what it chose, or empty
  std::string warning;  // about the schedule, or empty
  Workload work;
  MemoryForecast memory;  // of the host
  DiskForecast disk;
  std::optional<DevicePlan> device;
  // The run's own micro-batches first, then half and a quarter of training's largest one.
  std::vector<Alternative> alternatives;
  double available_mb = 0;  // memory of this machine that is free now
  bool too_large = false;   // for it, or for the GPU: no time was measured
  bool timed = false, time_wanted = false;
  TimeForecast time;
};

// Error for all that train refuses, --output apart, which nobody looks at. `processes`: of one
// host. `measure_time`: some steps are computed, which takes the memory of the run. What `inputs`
// has of the data is not read again.
RunPlan plan_run(const TrainOptions& options, int64_t processes, bool measure_time,
                 SharedInputs& inputs);

}  // namespace finetune
