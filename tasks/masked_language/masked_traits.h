// Masked language modelling for the table of tasks: its row, and its loss.
#pragma once

#include <memory>

#include "tasks/task_traits.h"

namespace finetune {

TaskTraits masked_traits();

// Cross entropy over the vocabulary for the hidden pieces. The memory that `arrays` views must
// outlive the objective.
std::unique_ptr<Objective> make_masked_objective(const TrainingArrays& arrays);

}  // namespace finetune
