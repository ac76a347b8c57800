// The directory of a sweep: its runs, the results in sweep.json and sweep.csv, and the lock on it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/sweep/sweep.h"

namespace finetune {

// The first bytes of sweep.json.
inline constexpr std::string_view kSweepMarker = "{\"finetune_sweep\":";

// Results over all finished runs.
struct SweepSummary {
  std::string comparison;      // the object of compare --json; empty: there is none
  std::optional<size_t> best;  // place in the grid
  std::string metric;          // the deciding metric
};
SweepSummary summary_of(const SweepResult& result);

// One object: finetune_sweep (the version), grid, runs (a line each: name, status, exit_code,
// options, metrics, error), best (run, model, the deciding metric and its value; or null),
// comparison (or null). `reports` are in order of the grid.
std::string sweep_json(const Grid& grid, const std::vector<RunReport>& reports,
                       const SweepSummary& summary);
// One row per run: run, status, exit_code, the options of [sweep], all metrics, error.
std::string sweep_csv(const Grid& grid, const std::vector<RunReport>& reports);

// The last line of --json, a summary: sweep (its directory), runs, finished, failed, best,
// comparison.
std::string sweep_line(const Grid& grid, const std::vector<RunReport>& reports,
                       const SweepSummary& summary);
// The path of the best run's model.
std::string best_model(const Grid& grid, size_t best);

// The line that --json prints for a run that has not finished, in place of its metrics.
std::string failure_line(const SweepRun& run, const RunReport& report);

// Checks the directory and writes nothing. Error(usage): it is not a sweep's, or it holds a run of
// the grid with other options that change the result. Error(model): it cannot be written.
void check_sweep_directory(const Grid& grid);

class SweepDirectory {
 public:
  // Checks the directory, makes it, and locks it until destruction. Error(usage): another process
  // uses it.
  explicit SweepDirectory(const Grid& grid);
  ~SweepDirectory();
  SweepDirectory(const SweepDirectory&) = delete;
  SweepDirectory& operator=(const SweepDirectory&) = delete;

  // Names of runs in the directory that the grid does not have.
  std::vector<std::string> other_runs() const;
  // Writes sweep.csv and sweep.json, each atomically.
  void write_tables(const std::vector<RunReport>& reports, const SweepSummary& summary = {}) const;

 private:
  void lock();

  const Grid& grid_;
  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace finetune
