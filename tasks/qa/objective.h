// The loss of extractive question answering.
#pragma once

#include <memory>

#include "tasks/objective.h"

namespace finetune {

// Cross-entropy over the window's tokens of the answer's start and end, averaged. The memory that
// `arrays` views must outlive the objective.
std::unique_ptr<Objective> make_qa_objective(const TrainingArrays& arrays);

}  // namespace finetune
