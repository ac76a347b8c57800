// Checks what predict was asked for against the model and its task.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "tasks/prediction_request.h"
#include "tasks/task.h"

namespace finetune {

// Error(usage) for a request that suits another task, and for a top_k that is not in [1, labels] or
// does not go with the problem type, likewise options.min_probability; Error(model) for a config
// without labels.
void check_prediction(const PredictionRequest& request, const TaskOptions& options,
                      const EncoderConfig& config);

// Error(usage) naming `option`, which makes labels kUnsure, for a model that gives not one label a
// row, or has a label of this name.
void check_unsure(std::string_view option, ProblemType problem,
                  const std::vector<std::string>& labels);

}  // namespace finetune
