// Before the first run of a sweep: everything that would refuse its runs, with nothing written yet.
#pragma once

#include "comm/communicator.h"
#include "experiments/sweep/grid.h"
#include "experiments/sweep/halving.h"
#include "train/run/shared_inputs.h"

namespace finetune {

// Orders runs (places in the grid) so that runs that read the same data follow each other, and it
// is read once.
std::vector<size_t> in_order_of_data(const Grid& grid, std::vector<size_t> runs);

// Returns the lengths of all runs of the grid. Error(usage): a run has no evaluation data.
std::vector<RunLength> lengths_of(const Grid& grid, SharedInputs& inputs);

// Reads data and model of the first of `runs` (places in the grid) into `inputs`, and checks the
// options of all runs that read the same. Errors as train. Collective.
void check_runs(const Grid& grid, const std::vector<size_t>& runs, Communicator& comm,
                SharedInputs& inputs);

}  // namespace finetune
