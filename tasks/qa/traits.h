// The row of extractive question answering in the table of tasks.
#pragma once

#include "tasks/task_traits.h"

namespace finetune {

TaskTraits qa_traits();

}  // namespace finetune
