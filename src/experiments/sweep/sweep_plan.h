// What a sweep will take: its runs, time and disk, without running it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/sweep/sweep.h"

namespace finetune {

enum class PlannedState { fresh, begun, finished, diverged };

struct PlannedRun {
  PlannedState state = PlannedState::fresh;
  double seconds = 0;           // of the whole run, also where it has begun; 0 where it is over
  uint64_t peak = 0, left = 0;  // bytes of disk, at most while it goes on and in the end
};

struct SweepPlan {
  std::vector<PlannedRun> runs;  // in order of the grid
  double seconds = 0;            // with --jobs and --halving, of what has not ended
  uint64_t peak = 0, left = 0;   // bytes of disk for that, besides what has ended
};

// As plan_run forecasts each run on its part of the cores. Runs that differ only in what changes
// neither time nor disk are measured once. Nothing is written. Errors are those of plan_run, and of
// check_sweep_directory.
SweepPlan plan_sweep(const Grid& grid, const SweepSettings& settings);

// For people, and one line of JSON.
std::string sweep_plan_text(const Grid& grid, const SweepSettings& settings, const SweepPlan& plan);
std::string sweep_plan_json(const Grid& grid, const SweepPlan& plan);

}  // namespace finetune
