// The loss of hidden words: cross entropy over the vocabulary, on the pieces that are hidden.
#pragma once

#include <memory>

#include "tasks/objective.h"

namespace finetune {

std::unique_ptr<Objective> make_masked_objective(const TrainingArrays& arrays);

}  // namespace finetune
