// Reads and checks what runs would read and check, for commands that start several runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/recipe/recipe.h"
#include "train/run/shared_inputs.h"

namespace finetune {

// Reads the run's data and model into `inputs` and waits for their SHA-256, so that forked
// processes inherit both. Throws as train does.
void read_inputs(const TrainOptions& options, SharedInputs& inputs);

// SHA-256 of the run's data and of its model, as in run.json.
struct InputSums {
  std::string data, model;
};
InputSums input_sums(const TrainOptions& options, SharedInputs& inputs);

// Returns what a recipe needs to know of the run's data and model, or nothing if there is no
// evaluation data.
std::optional<RecipeFacts> facts_with_evaluation(const TrainOptions& options, SharedInputs& inputs);

struct NamedRun {
  const TrainOptions& options;
  std::string name;  // for errors
};
// Reads data and model of the first run into `inputs`. All runs must read the same data and model:
// checks their options, and that the other runs' files can be opened. `processes`: of each run.
// Throws as train does; the message begins with the run's name.
void check_options_of(const std::vector<NamedRun>& runs, int processes, SharedInputs& inputs);

}  // namespace finetune
