// The row of extractive question answering in the table of tasks.
#include "tasks/qa/traits.h"

#include "data/squad.h"
#include "tasks/pair_types.h"
#include "tasks/qa/evaluation/file_evaluation.h"
#include "tasks/qa/objective.h"
#include "tasks/qa/prediction.h"
#include "tasks/qa/qa_task.h"

namespace finetune {
namespace {

constexpr std::string_view kTitle = "question answering";
constexpr std::string_view kOptions[] = {"doc-stride",     "n-best",        "max-answer-length",
                                         "null-threshold", "squad-version", "nbest"};

std::unique_ptr<Task> make(const TaskOptions& options, const TaskModel& model) {
  require_pair_types(model.config, kTitle);
  return make_qa_task(options, model.tokenizer, model.config.max_length());
}

std::unique_ptr<FileEvaluation> make_evaluation(const TaskOptions& options,
                                                const TaskModel& model) {
  require_pair_types(model.config, kTitle);
  return std::make_unique<QaFileEvaluation>(options, model.tokenizer, model.config.max_length(),
                                            true);
}

}  // namespace

TaskTraits qa_traits() {
  return {.kind = TaskKind::qa,
          .name = "qa",
          .title = kTitle,
          .data = "questions",
          .head = HeadKind::token,
          .options = kOptions,
          .recognizes = looks_like_squad,
          .make = make,
          .make_objective = make_qa_objective,
          .make_file_evaluation = make_evaluation,
          .make_prediction = make_answer_prediction,
          .stored_options = qa_defaults};
}

}  // namespace finetune
