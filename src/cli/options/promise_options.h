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

// Stores a promise beside the model. Without a threshold: returns ExitCode::assertion.
ExitCode keep_promise(const FineTuned& model, const std::optional<Promise>& promise);

}  // namespace finetune
