// Runs `finetune train` from its options to the files of the run.
#pragma once

#include <functional>
#include <string>

#include "comm/communicator.h"
#include "core/error.h"
#include "train/options/options.h"
#include "train/record/progress.h"
#include "train/run/shared_inputs.h"

namespace finetune {

struct TrainOutcome {
  ExitCode code = ExitCode::done;
  bool paused = false;  // at RunInTurn::pause_share
  // Empty if the run did not end.
  std::string result_line = {};  // the run and its final metrics as JSON (result_line.h)
  std::string summary = {};      // the metrics for people
  // Metric, value, bound, PASS or FAIL; empty without --assert and --baseline.
  std::string gate_table = {};
  std::string failed_gates = {};  // on one line
};

// Settings of a run that is one of several in a process.
struct RunInTurn {
  SharedInputs& inputs;
  // The run stops with a checkpoint once this share of its evaluations is done
  // (evaluation_at_share); 0: it does not stop.
  double pause_share = 0;
  // Called on rank 0 after each step; may be empty.
  std::function<void(const RunProgress&)> progress = {};
  bool began = false;  // set by run_training: all checks passed and the run's files exist
};

// Trains. Throws Error if the run ends with an error. A stop by a signal or the time limit is not
// an error: the outcome's code says so. Collective: all processes get the same code, only rank 0
// the texts.
TrainOutcome run_training(const TrainOptions& options, Communicator& comm,
                          RunInTurn* turn = nullptr);

}  // namespace finetune
