// What the table of tasks has of masked language modelling: its row and its loss.
#pragma once

#include <memory>

#include "tasks/task_traits.h"

namespace finetune {

TaskTraits masked_traits();

// Cross entropy over the vocabulary, on the pieces that are hidden. The memory that `arrays` views
// must outlive the objective.
std::unique_ptr<Objective> make_masked_objective(const TrainingArrays& arrays);

}  // namespace finetune
