// Answers to new questions.
#pragma once

#include <memory>

#include "tasks/task_traits.h"

namespace finetune {

// Error(usage) for what a request asks of another task.
std::unique_ptr<Prediction> make_answer_prediction(const PredictionRequest& request,
                                                   const TaskOptions& options,
                                                   const TaskModel& model);

}  // namespace finetune
