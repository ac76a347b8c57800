// Reads and checks what runs would read and check, for commands that start several runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/recipe/recipe.h"
#include "train/run/shared_inputs.h"

namespace finetune {

// Reads the run's data and model into `inputs`, and waits for their sums, so that a run in a forked
// process finds them there. Errors as train.
void read_inputs(const TrainOptions& options, SharedInputs& inputs);

// SHA-256 of the run's data and of its model, as in run.json.
struct InputSums {
  std::string data, model;
};
InputSums input_sums(const TrainOptions& options, SharedInputs& inputs);

// Returns what a recipe needs to know of the run's data and model; nothing if there is no
// evaluation data.
std::optional<RecipeFacts> facts_with_evaluation(const TrainOptions& options, SharedInputs& inputs);

struct NamedRun {
  const TrainOptions& options;
  std::string name;  // for errors
};
// Reads data and model of the first run into `inputs`. Checks the options of all runs that read the
// same, and that the others' files can be opened. `processes`: of each run. Errors as train,
// beginning with the run's name.
void check_options_of(const std::vector<NamedRun>& runs, int processes, SharedInputs& inputs);

}  // namespace finetune
