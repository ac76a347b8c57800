// Prepares a training run: everything before its first step, on every process.
#pragma once

#include <memory>
#include <variant>

#include "train/run/shared_inputs.h"
#include "train/signals.h"
#include "train/training_run.h"

namespace finetune {

// --resume of a run that has ended. Only rank 0 has the directory and the assertions.
struct FinishedRun {
  TrainOptions given;
  std::unique_ptr<RunDirectory> directory;
  std::vector<Assertion> assertions;
};

using PreparedRun = std::variant<FinishedRun, std::unique_ptr<TrainingRun>>;

// Checks options, data and model, and throws Error before anything is written. Then makes the run's
// directory, and loads the weights or a checkpoint. For a finished run it only compares the SHA-256
// of data and model with the run's. It opens the console: from then on rank 0's log goes to
// standard error. A signal during the wait for a pipe or a sum throws Error with its exit code.
// `shared`: inputs shared by this process's runs; null for a single run. Collective.
PreparedRun prepare_run(const TrainOptions& options, Communicator& world,
                        const SignalGuard& signals, SharedInputs* shared);

}  // namespace finetune
