// The loss of sequence classification and regression.
#pragma once

#include <memory>

#include "tasks/objective.h"

namespace finetune {

// Cross-entropy with class weights and label smoothing, binary cross-entropy for multi-label, the
// squared error for regression. The memory that `arrays` views must outlive the objective.
std::unique_ptr<Objective> make_classification_objective(const TrainingArrays& arrays);

}  // namespace finetune
