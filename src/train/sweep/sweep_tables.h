// What a sweep says of its runs in files and lines: sweep.json, sweep.csv.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train/sweep/sweep.h"

namespace finetune {

// sweep.json begins with it.
inline constexpr std::string_view kSweepMarker = "{\"finetune_sweep\":";

// One object: finetune_sweep (the version), grid, runs (a line each: name, status, exit_code,
// options, metrics, error), comparison (an object as compare --json prints it, or null). `reports`
// in order of the grid.
std::string sweep_json(const Grid& grid, const std::vector<RunReport>& reports,
                       const std::string& comparison);
// A row a run: run, status, exit_code, the options of [sweep], all metrics, error.
std::string sweep_csv(const Grid& grid, const std::vector<RunReport>& reports);

// The summary that --json ends with, one line: sweep (its directory), runs, finished, failed,
// comparison.
std::string sweep_line(const Grid& grid, const std::vector<RunReport>& reports,
                       const std::string& comparison);

// Of a run that has not come to its end, one line of JSON: what --json prints in place of metrics.
std::string failure_line(const SweepRun& run, const RunReport& report);

}  // namespace finetune
