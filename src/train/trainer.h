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
  bool paused = false;  // by RunInTurn::pause_share
  // Empty if the run did not end.
  std::string result_line = {};  // the run and its final metrics as one JSON object (result_line.h)
  std::string summary = {};      // the metrics for people
  // Metric, value, bound, PASS or FAIL; empty without --assert and --baseline.
  std::string gate_table = {};
};

// What a run is told that is one of several in a process.
struct RunInTurn {
  SharedInputs& inputs;
  // Stops with a checkpoint after the evaluation that has this share of the run's evaluations
  // behind it (evaluation_at_share); 0: never.
  double pause_share = 0;
  // Called on rank 0 after each step; may be empty.
  std::function<void(const RunProgress&)> progress = {};
  bool began = false;  // told by run_training: nothing was refused, the run's files are there
};

// Throws Error for everything that ends the run with one line. Stopping by a signal or the time
// limit is no error: the outcome's code says so.
// Collective: every process has the same code, rank 0 alone the texts.
TrainOutcome run_training(const TrainOptions& options, Communicator& comm,
                          RunInTurn* turn = nullptr);

}  // namespace finetune
