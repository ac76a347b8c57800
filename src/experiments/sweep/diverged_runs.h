// Runs of a sweep that diverged in an earlier call: the same again would diverge again.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "experiments/sweep/sweep.h"
#include "train/run/shared_inputs.h"

namespace finetune {

// Equal where a run has the same version, options, data and model (the last two by their content),
// from which its end follows. Errors as train has them for files that cannot be read.
std::string divergence_key(const SweepRun& run, SharedInputs& inputs);

// Of these runs, places in the grid, those that diverged with the key that they have now, by the
// directory's sweep.json: what was reported of them then. One whose directory is gone is not among
// them.
std::map<size_t, RunReport> diverged_before(const Grid& grid, const std::vector<size_t>& runs,
                                            SharedInputs& inputs);

}  // namespace finetune
