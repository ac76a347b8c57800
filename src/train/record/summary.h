// Describes a finished run for people.
#pragma once

#include <string>

#include "tasks/task.h"
#include "train/options/options.h"
#include "train/run/run_directory.h"

namespace finetune {

// At most eight lines of 80 columns: the result, where the model is, and what to do next.
std::string summary_of(const TrainOptions& given, const RunDirectory& directory,
                       const Metrics& metrics);

// Whether the evaluation rows chose the run's best step: they were evaluated several times.
bool chose_best_step(const TrainOptions& given, const Metrics& metrics);

// Whether the run's model is still there.
bool has_model(const RunDirectory& directory);

}  // namespace finetune
