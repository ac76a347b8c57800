// --recipe quick: a linear head on a frozen encoder is all that is fitted (train/quick/head_fit.h).
#pragma once

#include <filesystem>
#include <string>

#include "model/config.h"
#include "tasks/task.h"
#include "train/options/options.h"

namespace finetune {

// Error(usage) naming an option that --recipe quick does not take, and what to use instead. Equal
// values, as config.toml of such a run has them, are allowed.
void require_quick_options(const TrainOptions& given);

// Whether a run with `auto` could be one with `quick`: the options, the task and the model allow
// it.
bool can_be_quick(const TrainOptions& options, const Task& task, const EncoderConfig& config);

// Whether `auto` takes `quick`: the rows of a label are so few that training loses to the fit.
bool takes_quick(const TrainOptions& options, const Task& task, const EncoderConfig& config);

// A line for the log on takes_quick(). `samples`: of training.
std::string line_of_quick(int64_t samples, int64_t labels);

// A line for the log where --folds would serve better than few evaluation rows, or none; else "".
std::string advice_on_folds(const TrainOptions& options, int64_t eval_rows);

// The configuration of the run's model: with --recipe quick it has a layer that pools.
EncoderConfig config_of_run(const TrainOptions& options, const EncoderConfig& config,
                            const std::filesystem::path& directory);

}  // namespace finetune
