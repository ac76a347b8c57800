// Checks what predict was asked for against the model and its task.
#pragma once

#include "model/config.h"
#include "tasks/prediction_request.h"
#include "tasks/task.h"

namespace finetune {

// Error(usage) for a request that suits another task, and for a top_k that is not in [1, labels] or
// does not go with the problem type, likewise options.min_probability; Error(model) for a config
// without labels.
void check_prediction(const PredictionRequest& request, const TaskOptions& options,
                      const EncoderConfig& config);

}  // namespace finetune
