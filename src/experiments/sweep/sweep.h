// Runs the runs of a grid as train would, and goes on with those that it has begun before.
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
  waiting,      // not begun, or not at its end
  finished,     // also where its gates failed: `code` says so
  failed,       // ended by an error
  interrupted,  // stopped by a signal or the time limit, its checkpoint is there
  dropped,      // by halving: `metrics` are those of its last evaluation
};
std::string_view name_of(RunStatus status);

struct RunReport {
  RunStatus status = RunStatus::waiting;
  ExitCode code = ExitCode::done;  // what train would have ended with
  std::string error;               // one line
  std::string result_line;         // of a finished run, as train --json prints it
  std::map<std::string, double> metrics;
  std::string best_metric;            // that chose its model; empty without evaluation data
  bool kept = false;                  // it had ended before this call
  std::string diverged_with;          // of one that diverged: divergence_key()
  double seconds = 0;                 // that it took in this call
  std::vector<std::string> warnings;  // of its log in this call
};

using ProgressReceiver = std::function<void(const RunProgress&)>;

struct RunAtWork {
  size_t run = 0;  // place in the grid
  RunProgress progress;
  double seconds = 0;  // since its turn began
};

struct SweepSettings {
  int64_t jobs = 1;  // runs at a time, of one process alone; each has its part of the cores
  // Successive halving (halving.h): one setting in so many goes on at each rung; 0: all do.
  int64_t halving = 0;
};

struct SweepResult {
  // The first run's in order of the grid that failed, one whose gates failed only where none has
  // failed otherwise; or that of a stop.
  ExitCode code = ExitCode::done;
  std::vector<RunReport> reports;   // in order of the grid
  std::vector<std::string> others;  // runs in the directory that are not of the grid
  // Of the finished runs, as `compare` has them; nothing where none is.
  std::vector<RunRecord> finished;
  std::optional<RunComparison> comparison;
  std::optional<size_t> best;  // place in the grid of the run that best_run() names
};

// What rank 0 hears while the sweep goes on.
struct SweepListener {
  std::function<void(size_t run, const RunReport& report)> ended;   // once for each run, at its end
  std::function<void(const std::string& line)> told;                // of a rung
  std::function<void(size_t run, const std::string& text)> warned;  // before `ended`
  std::function<void(const std::vector<RunAtWork>& runs)> progressed;  // after each step
};

// Collective; rank 0 alone has reports. A run that fails is reported and the next one begins; a
// signal or the time limit ends the sweep. Error for what concerns all runs and is found before the
// first one begins: a directory that is no sweep's or in which another process is at work, runs in
// it with other options, data that cannot be read.
SweepResult run_sweep(const Grid& grid, const SweepSettings& settings, Communicator& comm,
                      const SweepListener& listener);

}  // namespace finetune
