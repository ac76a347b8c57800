// Whether words can explain a model's labels.
#pragma once

#include <cstddef>

#include "tasks/task.h"

namespace finetune {

// Error(usage) about --explain if they cannot. `labels`: how many the model has.
void check_explanation(ProblemType problem, size_t labels);

}  // namespace finetune
