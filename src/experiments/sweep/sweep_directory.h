// The directory of a sweep: its runs, sweep.json and sweep.csv, and the lock on it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/sweep/sweep.h"
#include "experiments/sweep/sweep_tables.h"

namespace finetune {

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
  // sweep.csv and sweep.json, each whole or not at all (sweep_tables.h).
  void write_tables(const std::vector<RunReport>& reports, const SweepSummary& summary = {}) const;

 private:
  void lock();

  const Grid& grid_;
  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace finetune
