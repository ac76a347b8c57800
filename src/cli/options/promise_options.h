// The model and the rows of a promise, for evaluate --max-error and predict --automatic.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inference/fine_tuned_model.h"
#include "tasks/scores/promise_file.h"
#include "train/record/training_rows.h"

namespace finetune {

// Returns the files and options that the model's answers, and so a promise, depend on.
PromisedModel promised_model(const FineTuned& model);

// A promise needs rows that chose neither the weights nor the epoch, nor the calibration.
// Error(usage) for files of the model's run, and for files with the checksum of finetune.json.
// Warns if the run's files are not known.
void require_fresh_rows(const std::vector<InputFile>& data, const FineTuned& model,
                        const TrainingRowsOfModel& of_run);

// Says that `data` has a file that chose the model's best epoch, or that its mix with n-grams was
// fitted to: metrics of these rows are a little too good. Returns "" for other files, and if the
// run's files are not known.
std::string use_of_rows(const std::vector<InputFile>& data, const FineTuned& model,
                        const TrainingRowsOfModel& of_run);

// The files that the model's run read, for training and evaluation; none if they are not known.
std::vector<InputFile> files_of_run(const FineTuned& model);

// Stores a promise beside the model. Without a threshold: removes an older one, and returns
// ExitCode::assertion.
ExitCode keep_promise(const FineTuned& model, const std::optional<Promise>& promise);

}  // namespace finetune
