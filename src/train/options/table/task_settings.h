// Options that tasks read: from train's options to TaskOptions.
#pragma once

#include <span>

#include "tasks/task.h"
#include "train/options/option_row.h"
#include "train/options/train_options.h"

namespace finetune {

// All but the files.
TaskOptions task_options(const TrainOptions& options);

// Sets the given options alone, over what `to` has from a trained model.
void apply_given(std::span<const GivenOption> given, const TrainOptions& options, TaskOptions& to);

}  // namespace finetune
