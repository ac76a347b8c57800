// --recipe quick: a linear head on a frozen encoder is all that is fitted (train/quick/head_fit.h).
#pragma once

#include <filesystem>

#include "model/config.h"
#include "train/options/options.h"

namespace finetune {

// Error(usage) naming an option that --recipe quick does not take, and what to use instead. Equal
// values, as config.toml of such a run has them, are allowed.
void require_quick_options(const TrainOptions& given);

// The configuration of the run's model: with --recipe quick it has a layer that pools.
EncoderConfig config_of_run(const TrainOptions& options, const EncoderConfig& config,
                            const std::filesystem::path& directory);

}  // namespace finetune
