// What evaluate --max-error and predict --automatic need of a promise: its model and its rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inference/fine_tuned_model.h"
#include "tasks/scores/promise_file.h"

namespace finetune {

// What a promise about the model's answers depends on.
PromisedModel promised_model(const FineTuned& model);

// A promise needs rows that chose neither the weights nor the epoch, nor the calibration.
// Error(usage) for files of the model's run, if that is known.
void require_fresh_rows(const std::vector<std::string>& data,
                        const std::optional<TaskOptions>& of_run);

// The same for files with the checksum of the data that a model's finetune.json has, since the
// files of its run are not known: a warning says that nothing else can be compared, and `why`.
void require_other_data(const std::vector<InputFile>& data, const FineTuned& model,
                        const std::string& why);

// Stores a promise beside the model. Without a threshold: removes an older one, and returns
// ExitCode::assertion.
ExitCode keep_promise(const FineTuned& model, const std::optional<Promise>& promise);

}  // namespace finetune
