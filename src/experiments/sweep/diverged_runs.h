// Finds runs of a sweep that diverged in an earlier call: they would diverge again.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "experiments/sweep/sweep.h"
#include "train/run/shared_inputs.h"

namespace finetune {

// A key of the program's version, the run's options, and the contents of its data and model. Runs
// with equal keys end in the same way. Errors as train: a file cannot be read.
std::string divergence_key(const SweepRun& run, SharedInputs& inputs);

// Returns the reports, from the directory's sweep.json, of those of `runs` (places in the grid)
// that diverged with the key that they have now. It leaves out runs whose directory is gone.
std::map<size_t, RunReport> diverged_before(const Grid& grid, const std::vector<size_t>& runs,
                                            SharedInputs& inputs);

}  // namespace finetune
