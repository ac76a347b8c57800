// Question answering for the table of tasks: its row, and its loss.
#pragma once

#include <memory>

#include "tasks/task_traits.h"

namespace finetune {

TaskTraits qa_traits();

// Cross-entropy over the window's tokens for the answer's start and end, averaged. The memory that
// `arrays` views must outlive the objective.
std::unique_ptr<Objective> make_qa_objective(const TrainingArrays& arrays);

}  // namespace finetune
