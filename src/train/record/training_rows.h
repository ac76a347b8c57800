// Finds the rows that a model was trained on and chosen by, if its run still exists.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tasks/task.h"

namespace finetune {

struct TrainingRowsOfModel {
  std::optional<TaskOptions> options;  // with the files
  std::string why;                     // why `options` is empty
  bool chose_best_step = false;        // the evaluation rows were evaluated several times
};

// `model`: the model's directory, which may be a run's model/. The run's data must still have the
// checksum in run.json.
TrainingRowsOfModel training_rows_of(const std::filesystem::path& model);

// The names of the files that the model's run read, whether or not they have changed. Empty if the
// model is not in a run's directory.
std::vector<std::filesystem::path> files_named_by_run(const std::filesystem::path& model);

}  // namespace finetune
