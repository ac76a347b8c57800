// The row of classification and regression in the table of tasks.
#include "tasks/classification/traits.h"

#include "tasks/classification/classification_task.h"
#include "tasks/classification/objective.h"

namespace finetune {
namespace {

constexpr std::string_view kOptions[] = {"text-column",
                                         "text-pair-column",
                                         "label-column",
                                         "multi-label",
                                         "regression",
                                         "no-standardize",
                                         "eval-group",
                                         "eval-split",
                                         "no-calibration",
                                         "tune-thresholds",
                                         "min-probability",
                                         "target-accuracy",
                                         "slice",
                                         "seen-in",
                                         "skip-bad-rows",
                                         "ignore-unknown-labels",
                                         "normalize-labels",
                                         "no-ngram-baseline",
                                         "ngram-mix",
                                         "no-ngram-mix",
                                         "class-weights",
                                         "label-smoothing",
                                         "top-k",
                                         "all-probabilities",
                                         "delimiter",
                                         "encoding",
                                         "input-format",
                                         "stream",
                                         "json-lines",
                                         "spreadsheet-safe",
                                         "long-text",
                                         "window-stride",
                                         "max-windows"};

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

}  // namespace

TaskTraits classification_traits() {
  return {.kind = TaskKind::classification,
          .name = "classification",
          .title = "classification",
          .head = HeadKind::sequence,
          .options = kOptions,
          .make = make,
          .make_objective = make_classification_objective,
          .make_evaluator = make_evaluator,
          .make_predictor = make_predictor,
          .stored_options = classification_defaults};
}

}  // namespace finetune
