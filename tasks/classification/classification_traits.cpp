// The row of classification and regression in the table of tasks.
#include "tasks/classification/classification_traits.h"

#include "tasks/classification/classification_task.h"
#include "tasks/classification/next_rows/next_rows.h"

namespace finetune {
namespace {

std::unique_ptr<Task> make(const TaskOptions& options, const TaskModel& model) {
  return std::make_unique<ClassificationTask>(options, model.tokenizer, model.config,
                                              model.trained_head);
}

std::unique_ptr<Evaluator> make_evaluator(const TaskOptions& options, const TaskModel& model) {
  return ClassificationEvaluator::of_files(options, model);
}

std::unique_ptr<Evaluator> make_predictor(const PredictionRequest& request,
                                          const TaskOptions& options, const TaskModel& model) {
  return ClassificationEvaluator::of_input(request, options, model);
}

std::unique_ptr<Evaluator> make_chooser(const PredictionRequest& request,
                                        const TaskOptions& options, const TaskModel& model) {
  return std::make_unique<NextRows>(request, options, model);
}

}  // namespace

TaskTraits classification_traits() {
  return {.kind = TaskKind::classification,
          .name = "classification",
          .title = "classification",
          .hub_task = "text-classification",
          .head = HeadKind::sequence,
          .make = make,
          .make_objective = make_classification_objective,
          .make_evaluator = make_evaluator,
          .make_predictor = make_predictor,
          .make_chooser = make_chooser,
          .require_columns = require_columns,
          .stored_options = classification_defaults};
}

}  // namespace finetune
