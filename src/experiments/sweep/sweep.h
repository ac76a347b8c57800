// Trains all runs of a grid, and resumes those that an earlier call began.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "core/error.h"
#include "experiments/compare/comparison.h"
#include "experiments/sweep/grid.h"
#include "train/record/progress.h"

namespace finetune {

enum class RunStatus {
  waiting,      // not started, or paused
  finished,     // its gates may have failed: see `code`
  failed,       // by an error
  interrupted,  // by a signal or the time limit; it has a checkpoint
  dropped,      // by halving; `metrics` are from its last evaluation
};
std::string_view name_of(RunStatus status);

struct RunReport {
  RunStatus status = RunStatus::waiting;
  ExitCode code = ExitCode::done;  // train's exit code for this run
  std::string error;               // one line
  std::string result_line;         // of a finished run, as train --json prints it
  std::map<std::string, double> metrics;
  std::string best_metric;            // chose the best model; empty without evaluation data
  bool kept = false;                  // it ended in an earlier call
  std::string diverged_with;          // divergence_key(), if it diverged
  double seconds = 0;                 // in this call
  std::vector<std::string> warnings;  // from its log in this call
};

using ProgressReceiver = std::function<void(const RunProgress&)>;

struct RunAtWork {
  size_t run = 0;  // place in the grid
  RunProgress progress;
  double seconds = 0;  // since its turn began
};

struct SweepSettings {
  int64_t jobs = 1;  // runs at a time, with one process; they divide the cores
  // Successive halving (halving.h): keep 1/`halving` of the settings at each rung; 0 keeps all.
  int64_t halving = 0;
};

struct SweepResult {
  // The code of a stop; else of the first failed run in order of the grid; else of the first run
  // whose gates failed.
  ExitCode code = ExitCode::done;
  std::vector<RunReport> reports;   // in order of the grid
  std::vector<std::string> others;  // runs in the directory that are not of the grid
  // The finished runs and, if they can be compared, their comparison.
  std::vector<RunRecord> finished;
  std::optional<RunComparison> comparison;
  std::optional<size_t> best;  // place in the grid of the run that best_run() names
};

// Callbacks for rank 0 during the sweep.
struct SweepListener {
  std::function<void(size_t run, const RunReport& report)> ended;   // once for each run, at its end
  std::function<void(const std::string& line)> told;                // such as the result of a rung
  std::function<void(size_t run, const std::string& text)> warned;  // before `ended`
  std::function<void(const std::vector<RunAtWork>& runs)> progressed;  // after each step
};

// Collective; only rank 0 has reports. A failed run is reported and the next one begins; a signal
// or the time limit ends the sweep. Throws before the first run begins if a problem concerns all
// runs: the directory is not a sweep's, another process uses it, a run in it has other options, or
// data cannot be read.
SweepResult run_sweep(const Grid& grid, const SweepSettings& settings, Communicator& comm,
                      const SweepListener& listener);

}  // namespace finetune
