// The row of masked language modelling in the table of tasks.
#include "tasks/masked_language/traits.h"

#include "core/error.h"
#include "tasks/masked_language/masked_task.h"
#include "tasks/masked_language/objective.h"

namespace finetune {
namespace {

constexpr std::string_view kMaskedOptions[] = {"mask-probability", "no-whole-words", "distinct"};
constexpr std::string_view kRowOptions[] = {"text-column", "skip-bad-rows", "delimiter",
                                            "encoding"};

std::unique_ptr<Task> make_task(const TaskOptions& options, const TaskModel& model) {
  return std::make_unique<MaskedTask>(options, model);
}

// Nobody asks for these (TaskTraits::answers).
std::unique_ptr<FileEvaluation> no_evaluation(const TaskOptions&, const TaskModel&) {
  throw internal_error("masked words are evaluated in training");
}
std::unique_ptr<Prediction> no_prediction(const PredictionRequest&, const TaskOptions&,
                                          const TaskModel&) {
  throw internal_error("masked words are not predicted");
}

TaskOptions nothing_stored(const BertConfig&) {
  return {};
}

}  // namespace

TaskTraits masked_traits() {
  return {.kind = TaskKind::mlm,
          .name = "mlm",
          .title = "masked language modelling",
          .head = HeadKind::masked,
          .options = kMaskedOptions,
          .borrowed_options = kRowOptions,
          .answers = false,
          .make = make_task,
          .make_objective = make_masked_objective,
          .make_file_evaluation = no_evaluation,
          .make_prediction = no_prediction,
          .stored_options = nothing_stored};
}

}  // namespace finetune
