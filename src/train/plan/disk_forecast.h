// The disk that a run needs, before it: checkpoints while it goes on, then the model beside them.
#pragma once

#include <cstdint>
#include <filesystem>

#include "model/parameters.h"
#include "train/options/options.h"

namespace finetune {

// Bytes. Logs, predictions and the tokenizer's files are not counted.
struct DiskForecast {
  uint64_t checkpoint = 0;  // each
  uint64_t model = 0;       // exported
  int64_t checkpoints = 0;  // most at once, with the one that is being written
  uint64_t peak = 0;
  uint64_t left = 0;  // after the run
};

// `steps` in all, of which an epoch has `epoch_steps`.
DiskForecast forecast_disk(const TrainOptions& options, const ParameterTable& table, int64_t steps,
                           int64_t epoch_steps, bool has_eval);

// Error(model), one line with what is needed and what is free, if the file system of --output has
// too little. What a run that goes on has there already, or one that is replaced frees, counts as
// free.
void require_disk(const TrainOptions& options, const DiskForecast& forecast);

}  // namespace finetune
