// Classification and regression for the table of tasks: their row, and their loss.
#pragma once

#include <memory>

#include "tasks/task_traits.h"

namespace finetune {

TaskTraits classification_traits();

// Returns the loss: cross-entropy with class weights and label smoothing; for multi-label binary
// cross-entropy; for regression the squared error. `arrays` has views: their memory must outlive
// it.
std::unique_ptr<Objective> make_classification_objective(const TrainingArrays& arrays);

}  // namespace finetune
