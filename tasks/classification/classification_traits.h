// Classification and regression for the table of tasks: their row, and their loss.
#pragma once

#include <memory>

#include "tasks/task_traits.h"

namespace finetune {

TaskTraits classification_traits();

// Cross-entropy with class weights and label smoothing, binary cross-entropy for multi-label, the
// squared error for regression. The memory that `arrays` views must outlive the objective.
std::unique_ptr<Objective> make_classification_objective(const TrainingArrays& arrays);

}  // namespace finetune
