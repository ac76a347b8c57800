// Forecasts the disk space of a run: its checkpoints, then also the exported model.
#pragma once

#include <cstdint>
#include <filesystem>

#include "model/parameters.h"
#include "train/options/options.h"

namespace finetune {

// In bytes. Logs, predictions and the tokenizer's files are not counted.
struct DiskForecast {
  uint64_t checkpoint = 0;  // each
  uint64_t model = 0;       // the exported file
  int64_t checkpoints = 0;  // the most at once, with the one being written
  uint64_t peak = 0;
  uint64_t left = 0;  // after the run
};

// `steps`: of the run. `epoch_steps`: of an epoch.
DiskForecast forecast_disk(const TrainOptions& options, const ParameterTable& table, int64_t steps,
                           int64_t epoch_steps, bool has_eval);

// Error(model), one line with what is needed and what is free, if the file system of --output has
// too little space. Files that a resumed run already has, or that --overwrite will remove, count as
// free.
void require_disk(const TrainOptions& options, const DiskForecast& forecast);

}  // namespace finetune
