// Before the first run of a sweep: what would refuse its runs, with nothing written yet.
#pragma once

#include "comm/communicator.h"
#include "experiments/sweep/grid.h"
#include "experiments/sweep/halving.h"
#include "train/run/shared_inputs.h"

namespace finetune {

// Reads the data and model of this run into `inputs`, and their sums, so that run_training only has
// to look. For who forks. Errors as train has them.
void read_inputs(const TrainOptions& options, SharedInputs& inputs);

// SHA-256 of the run's data and of its model, as run.json has them.
struct InputSums {
  std::string data, model;
};
InputSums input_sums(const TrainOptions& options, SharedInputs& inputs);

// Runs (places in the grid) that read the same data one after the other, so that it is read once.
std::vector<size_t> in_order_of_data(const Grid& grid, std::vector<size_t> runs);

// Of all runs of the grid, which are to be evaluated on the way. Error(usage) without evaluation
// data.
std::vector<RunLength> lengths_of(const Grid& grid, SharedInputs& inputs);

// Reads data and model of the first of these runs into `inputs`, and looks at the options of all
// that read the same. `runs`: places in the grid. Errors as train has them. Collective.
void check_runs(const Grid& grid, const std::vector<size_t>& runs, Communicator& comm,
                SharedInputs& inputs);

}  // namespace finetune
