// Checks before the first run of a sweep: invalid options, and runs that diverged earlier.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "experiments/sweep/grid.h"
#include "experiments/sweep/halving.h"
#include "experiments/sweep/sweep.h"
#include "train/run/shared_inputs.h"

namespace finetune {

// Orders runs (places in the grid) so that runs with the same data follow each other and the data
// is read once.
std::vector<size_t> in_order_of_data(const Grid& grid, std::vector<size_t> runs);

// Returns the lengths of all runs of the grid. Error(usage): a run has no evaluation data.
std::vector<RunLength> lengths_of(const Grid& grid, SharedInputs& inputs);

// Reads data and model of the first of `runs` (places in the grid) into `inputs`, and checks the
// options of all runs that read the same. Throws the errors of train. Collective.
void check_runs(const Grid& grid, const std::vector<size_t>& runs, Communicator& comm,
                SharedInputs& inputs);

// A key of the program's version, the run's options, and the contents of its data and model. Runs
// with equal keys end in the same way, so a run that diverged would diverge again. Throws the
// errors of train if a file cannot be read.
std::string divergence_key(const SweepRun& run, SharedInputs& inputs);

// Returns the reports, from the directory's sweep.json, of the `runs` (places in the grid) that
// diverged and whose key is still the same. Leaves out runs whose directory is gone.
std::map<size_t, RunReport> diverged_before(const Grid& grid, const std::vector<size_t>& runs,
                                            SharedInputs& inputs);

}  // namespace finetune
