// What a sweep says of its runs in files and lines: sweep.json, sweep.csv.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/sweep/sweep.h"

namespace finetune {

// sweep.json begins with it.
inline constexpr std::string_view kSweepMarker = "{\"finetune_sweep\":";

// What the runs that have finished say together.
struct SweepSummary {
  std::string comparison;      // an object as compare --json prints it; empty: there is none
  std::optional<size_t> best;  // place in the grid
  std::string metric;          // that decides
};
SweepSummary summary_of(const SweepResult& result);

// One object: finetune_sweep (the version), grid, runs (a line each: name, status, exit_code,
// options, metrics, error), best (run, model, the metric that decides and its value; or null),
// comparison (or null). `reports` in order of the grid.
std::string sweep_json(const Grid& grid, const std::vector<RunReport>& reports,
                       const SweepSummary& summary);
// A row a run: run, status, exit_code, the options of [sweep], all metrics, error.
std::string sweep_csv(const Grid& grid, const std::vector<RunReport>& reports);

// The summary that --json ends with, one line: sweep (its directory), runs, finished, failed, best,
// comparison.
std::string sweep_line(const Grid& grid, const std::vector<RunReport>& reports,
                       const SweepSummary& summary);
// Where the best run's model lies.
std::string best_model(const Grid& grid, size_t best);

// Of a run that has not come to its end, one line of JSON: what --json prints in place of metrics.
std::string failure_line(const SweepRun& run, const RunReport& report);

}  // namespace finetune
