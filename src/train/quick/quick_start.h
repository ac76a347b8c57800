// --recipe quick: the encoder is frozen, and the head is fitted to its features before any step.
#pragma once

#include <functional>
#include <memory>

#include "engine/pooled_weights.h"
#include "train/training_run.h"

namespace finetune {

// Error(usage) naming an option that --recipe quick does not take, and what to use instead. Equal
// values, as config.toml of such a run has them, are allowed.
void require_quick_options(const TrainOptions& given);

// The configuration of the run's model: with --recipe quick it has a layer that pools.
EncoderConfig config_of_run(const TrainOptions& options, const EncoderConfig& config,
                            const std::filesystem::path& directory);

// The head is on every process, the rest on rank 0.
struct QuickFit {
  LinearHead head;
  double loss = 0, seconds = 0;
  int64_t tokens = 0;
};

// Computes the features of the training samples and fits the head to them. `source`: null where
// another process reads the weights for this one. `check_stop` throws if rank 0 was told to stop.
// Collective.
QuickFit fit_quick(const Machine& machine, const Settings& settings, const TrainingArrays& arrays,
                   const WeightSource* source, const std::function<void()>& check_stop);

// The state after the fit, which counts as the run's one step over all rows.
void take_fit(const QuickFit& fit, int64_t samples, CheckpointState& state);

}  // namespace finetune
