// Forecasts a sweep's time and disk space without running it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/sweep/sweep.h"

namespace finetune {

enum class PlannedState { fresh, begun, finished, diverged };

struct PlannedRun {
  PlannedState state = PlannedState::fresh;
  double seconds = 0;           // of the whole run, even if it has begun; 0 if it has ended
  uint64_t peak = 0, left = 0;  // bytes of disk: the most during the run, and after it
};

struct SweepPlan {
  std::vector<PlannedRun> runs;  // in order of the grid
  double seconds = 0;            // of the runs that have not ended, with --jobs and --halving
  uint64_t peak = 0, left = 0;   // bytes of disk that these runs need
};

// Forecasts each run with plan_run on its part of the cores. Measures once for runs that differ
// only in options that change neither time nor disk. Writes nothing. Throws the errors of plan_run
// and check_sweep_directory.
SweepPlan plan_sweep(const Grid& grid, const SweepSettings& settings);

// The plan as text for people, and as one line of JSON.
std::string sweep_plan_text(const Grid& grid, const SweepSettings& settings, const SweepPlan& plan);
std::string sweep_plan_json(const Grid& grid, const SweepPlan& plan);

}  // namespace finetune
