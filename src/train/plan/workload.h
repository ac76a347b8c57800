// What a run computes, known from the plan of its batches before anything is computed.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/engine.h"
#include "tasks/task.h"
#include "train/options/options.h"

namespace finetune {

struct Workload {
  int64_t steps = 0;
  double step_samples = 0, step_tokens = 0;  // of a step, in the mean
  // Most tokens and most sequences of any micro-batch; zeros without evaluation data.
  MicroBatchLimits training, evaluation;
  int64_t evaluations = 0;
  int64_t evaluation_batches = 0;  // micro-batches of one
};

// Samples of the first epoch of a run of `steps` steps, in their order; fewer where it ends
// earlier.
std::vector<uint32_t> first_epoch(const TokenizedSamples& samples, const TrainOptions& options,
                                  int64_t steps);

// Of a run of `steps` steps, at least one, with these options as resolved. The first epoch is
// looked at: others have micro-batches of nearly the same sizes.
Workload workload_of(const Task& task, const TrainOptions& options, int64_t steps,
                     const MicroBatching& cut, int64_t evaluation_tokens);

// Which rows of the word embedding the first epoch's steps have.
std::vector<bool> words_of(const TokenizedSamples& samples, const TrainOptions& options,
                           int64_t steps, int64_t rows);

}  // namespace finetune
