// The rows that a model was trained on and chosen by, where its run still tells.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tasks/task.h"

namespace finetune {

struct TrainingRowsOfModel {
  std::optional<TaskOptions> options;  // with files
  std::string why;                     // there are none
};

// `model`: the model's directory, which may be a run's model/. The run's data must be there with
// the sums of run.json.
TrainingRowsOfModel training_rows_of(const std::filesystem::path& model);

// The names of the files that the model's run read, whether or not they are as they were. Empty
// where the model lies in no run.
std::vector<std::filesystem::path> files_named_by_run(const std::filesystem::path& model);

}  // namespace finetune
