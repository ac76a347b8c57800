// Measures how fast this machine trains and evaluates, with a learner that is thrown away.
#pragma once

#include "train/prepare/reading.h"
#include "train/recipe/time_budget.h"

namespace finetune {

// The costs of a run with these settings, on rank 0. `spent` is the time to build the learner
// again. Steps and evaluation are each measured for about `most_seconds`. `encoder`: null if
// another process reads the weights. Collective.
RunCosts measured_costs(const Context& context, const Machine& machine, const Settings& settings,
                        const TrainingArrays& arrays, Task* task, const WeightSource* encoder,
                        double most_seconds);

}  // namespace finetune
