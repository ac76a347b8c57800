// The rows that a model was trained on and chosen by, where its run still tells.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tasks/task.h"

namespace finetune {

struct TrainingRowsOfModel {
  std::optional<TaskOptions> options;  // with files
  std::string why;                     // there are none
};

// `model`: the model's directory, which may be a run's model/. The run's data must be there with
// the sums of run.json.
TrainingRowsOfModel training_rows_of(const std::filesystem::path& model);

}  // namespace finetune
