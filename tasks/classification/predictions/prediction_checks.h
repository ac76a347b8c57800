// Checks predict's request against the model and its task.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "tasks/prediction_request.h"
#include "tasks/task.h"

namespace finetune {

// Error(usage) for a request for another task; for a top_k outside [1, labels]; and if top_k or
// options.min_probability does not suit the problem type. Error(model) for a config without labels.
void check_prediction(const PredictionRequest& request, const TaskOptions& options,
                      const EncoderConfig& config);

// Error(usage) naming `option`, which gives some rows the label kUnsure, if the model does not give
// one label per row, or has a label of this name.
void check_unsure(std::string_view option, ProblemType problem,
                  const std::vector<std::string>& labels);

}  // namespace finetune
