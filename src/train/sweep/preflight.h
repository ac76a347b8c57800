// Before the first run of a sweep: what would refuse its runs, with nothing written yet.
#pragma once

#include "comm/communicator.h"
#include "train/recipe/recipe.h"
#include "train/run/shared_inputs.h"
#include "train/sweep/grid.h"

namespace finetune {

// Reads the data and model of this run into `inputs`, and their sums, so that run_training only has
// to look. For who forks. Errors as train has them.
void read_inputs(const TrainOptions& options, SharedInputs& inputs);

// The training samples of runs that are to be evaluated on the way. Error(usage) without evaluation
// data.
RecipeFacts facts_of_data(const TrainOptions& options, SharedInputs& inputs);

// Reads data and model of the first of these runs into `inputs`, and looks at the options of all
// that read the same. `runs`: places in the grid. Errors as train has them. Collective.
void check_runs(const Grid& grid, const std::vector<size_t>& runs, Communicator& comm,
                SharedInputs& inputs);

}  // namespace finetune
