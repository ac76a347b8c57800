// The row of classification and regression in the table of tasks.
#pragma once

#include "tasks/task_traits.h"

namespace finetune {

TaskTraits classification_traits();

}  // namespace finetune
