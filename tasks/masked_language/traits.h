// The row of masked language modelling in the table of tasks.
#pragma once

#include "tasks/task_traits.h"

namespace finetune {

TaskTraits masked_traits();

}  // namespace finetune
