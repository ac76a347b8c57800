// What a run of `train` will take: its batches, its memory and its time, without running it.
//
// Data and model are read, tokenized and checked as train does it, and what this process holds then
// is measured; everything that a run allocates after that follows from the model's shape and the
// plan of the batches by formula. Pages that nobody touches cost nothing, so what counts is the
// largest micro-batch that the run really has, not the largest one that there could be.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/options.h"
#include "train/workload.h"

namespace finetune {

// Bytes. Of one process; where a host has several, of the one that reads the data (rank 0).
struct MemoryForecast {
  int64_t weights = 0;
  int64_t gradients = 0;  // all arenas that this process computes into
  int64_t optimizer = 0;  // m and v
  int64_t activations = 0;
  int64_t scratch = 0;     // packed operands of matrix products
  int64_t data = 0;        // vocabulary, texts and tokens, measured; the batch at work
  int64_t evaluation = 0;  // what evaluations keep of each sample
  int64_t program = 0;     // program and libraries, measured
  int64_t peak = 0;        // of the process: forecast of peak_memory_mb
  int64_t host = 0;        // all processes together, what they share counted once
};

// The same run with other micro-batches.
struct Alternative {
  int64_t micro_batch_tokens = 0;
  int64_t kept_peak = 0, recomputed_peak = 0;  // without and with --recompute
};

struct TimeForecast {
  double startup = 0;     // seconds, until the first step
  double step = 0;        // the mean
  double evaluation = 0;  // one over all evaluation data
  double total = 0;       // without writing checkpoints
};

struct RunPlan {
  std::string task, backend;
  int64_t processes = 1, shards = 1, gradient_arenas = 1;
  int64_t parameters = 0, samples = 0, eval_samples = 0, batch_size = 0;
  int64_t train_tokens = 0, eval_tokens = 0;
  int64_t micro_batch_tokens = 0;
  bool recompute = false;
  Workload work;
  MemoryForecast memory;
  // The run's own micro-batches first, then half and a quarter of the largest one.
  std::vector<Alternative> alternatives;
  bool too_large = false;  // for the memory available: no time was measured
  bool timed = false;
  TimeForecast time;
  double available_mb = 0;  // memory of this machine that is free now
};

// Error for all that train refuses, --output apart, which nobody looks at. `measure_time`: some
// steps are computed, which takes the memory of the run.
RunPlan plan_run(const TrainOptions& options, int64_t processes, bool measure_time);

}  // namespace finetune
