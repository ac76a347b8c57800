// The directory of a sweep: runs by name, sweep.json and sweep.csv; who may use it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/sweep/sweep.h"
#include "experiments/sweep/sweep_tables.h"

namespace finetune {

// Writes nothing. Error(usage): the directory is a run's or something else's, or a run of the grid
// that is there has other options that change its result. Error(model): it cannot be written.
void check_sweep_directory(const Grid& grid);

class SweepDirectory {
 public:
  // Checks and makes it, and holds a lock until destruction: Error(usage) if another process is at
  // work there.
  explicit SweepDirectory(const Grid& grid);
  ~SweepDirectory();
  SweepDirectory(const SweepDirectory&) = delete;
  SweepDirectory& operator=(const SweepDirectory&) = delete;

  // Names of runs there that the grid does not have (any more).
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
