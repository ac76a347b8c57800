// Before the first run of a sweep: what would refuse its runs, with nothing written yet.
#pragma once

#include "comm/communicator.h"
#include "train/run/shared_inputs.h"
#include "train/sweep/grid.h"

namespace finetune {

// Reads data and model of the first of these runs into `inputs`, and looks at the options of all
// that read the same. `runs`: places in the grid. Errors as train has them. Collective.
void check_runs(const Grid& grid, const std::vector<size_t>& runs, Communicator& comm,
                SharedInputs& inputs);

}  // namespace finetune
