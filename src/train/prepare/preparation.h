// Prepares a training run: everything before its first step, on every process.
#pragma once

#include <memory>
#include <variant>

#include "train/run/shared_inputs.h"
#include "train/signals.h"
#include "train/training_run.h"

namespace finetune {

// --resume of a run that has ended. Rank 0 alone has the directory and the assertions.
struct FinishedRun {
  TrainOptions given;
  std::unique_ptr<RunDirectory> directory;
  std::vector<Assertion> assertions;
};

using PreparedRun = std::variant<FinishedRun, std::unique_ptr<TrainingRun>>;

// Checks options, data and model, and throws Error before anything is written. Then makes the run's
// directory, loads or continues. For a finished run it loads nothing, but compares the sums of data
// and model with the run's. It opens the console: from then on rank 0's log goes to standard error.
// A signal while it waits for a pipe or for sums throws Error with the signal's exit code.
// `shared`: inputs that runs of this process share; null: this is the only run. Collective.
PreparedRun prepare_run(const TrainOptions& options, Communicator& world,
                        const SignalGuard& signals, SharedInputs* shared);

}  // namespace finetune
