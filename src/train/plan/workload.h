// What a run will compute, counted from its batches before anything is computed.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/engine.h"
#include "tasks/task.h"
#include "train/options/options.h"

namespace finetune {

struct Workload {
  int64_t steps = 0;
  double step_samples = 0, step_tokens = 0;  // means
  // The most tokens and the most sequences of any micro-batch; zeros without evaluation data.
  MicroBatchLimits training, evaluation;
  int64_t evaluations = 0;
  int64_t evaluation_batches = 0;  // per evaluation
};

// The samples of the first epoch of a run of `steps` steps, in order; fewer if the run ends
// earlier.
std::vector<uint32_t> first_epoch(const TokenizedSamples& samples, const TrainOptions& options,
                                  int64_t steps);

// The work of a run of `steps` steps, at least one, with resolved options. Only the first epoch is
// looked at: other epochs have micro-batches of nearly the same sizes.
Workload workload_of(const Task& task, const TrainOptions& options, int64_t steps,
                     const MicroBatching& cut, int64_t evaluation_tokens);

// The rows of the word embedding that occur in the first epoch's steps.
std::vector<bool> words_of(const TokenizedSamples& samples, const TrainOptions& options,
                           int64_t steps, int64_t rows);

}  // namespace finetune
