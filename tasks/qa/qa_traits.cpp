// The row of extractive question answering in the table of tasks.
#include "tasks/qa/qa_traits.h"

#include "data/squad.h"
#include "tasks/qa/evaluation/qa_evaluator.h"
#include "tasks/qa/qa_task.h"
#include "tasks/texts/pair_types.h"

namespace finetune {
namespace {

constexpr std::string_view kTitle = "question answering";
std::unique_ptr<Task> make(const TaskOptions& options, const TaskModel& model) {
  require_pair_types(model.config, kTitle);
  return make_qa_task(options, model.tokenizer, model.config.max_length());
}

std::unique_ptr<Evaluator> make_evaluator(const TaskOptions& options, const TaskModel& model) {
  require_pair_types(model.config, kTitle);
  return std::make_unique<QaEvaluator>(options, model.tokenizer, model.config.max_length(), true);
}

std::unique_ptr<Evaluator> make_predictor(const PredictionRequest& request,
                                          const TaskOptions& options, const TaskModel& model) {
  return QaEvaluator::of_input(request, options, model);
}

}  // namespace

TaskTraits qa_traits() {
  return {.kind = TaskKind::qa,
          .name = "qa",
          .title = kTitle,
          .data = "questions",
          .example = "question",
          .hub_task = "question-answering",
          .hub_data = "squad",
          .head = HeadKind::token,
          .recognizes = looks_like_squad,
          .make = make,
          .make_objective = make_qa_objective,
          .make_evaluator = make_evaluator,
          .make_predictor = make_predictor,
          .stored_options = qa_defaults};
}

}  // namespace finetune
