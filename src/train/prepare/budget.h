// --time-budget: measures what a run costs on this machine, and makes it fit into the time.
#pragma once

#include "train/prepare/reading.h"
#include "train/recipe/time_budget.h"

namespace finetune {

// Sets options.recipe and options.max_steps of a run that is to be shorter. `options` are those
// before they were resolved, `settings` the resolved ones. A length that was given is kept. Sets
// the times in `settings`. Returns a line for the log, on rank 0. Takes a few seconds. Collective.
std::string fit_to_budget(const Context& context, const Machine& machine, const Reading& reading,
                          const TrainingArrays& arrays, Settings& settings, TrainOptions& options);

// The times of a run that measures nothing: it continues, or is --recipe quick.
void keep_budget(Settings& settings);

}  // namespace finetune
