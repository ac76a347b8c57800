// Labels of new rows, in bounded chunks.
#pragma once

#include <memory>

#include "tasks/task_traits.h"

namespace finetune {

// Error(usage) for what a request asks of another task, Error(data) for data of another's form.
std::unique_ptr<Prediction> make_label_prediction(const PredictionRequest& request,
                                                  const TaskOptions& options,
                                                  const TaskModel& model);

}  // namespace finetune
