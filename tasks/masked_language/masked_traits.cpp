// The row of masked language modelling in the table of tasks.
#include "tasks/masked_language/masked_traits.h"

#include "core/error.h"
#include "tasks/masked_language/masked_task.h"

namespace finetune {
namespace {

std::unique_ptr<Task> make_task(const TaskOptions& options, const TaskModel& model) {
  return std::make_unique<MaskedTask>(options, model);
}

// Never called: TaskTraits::answers is false.
std::unique_ptr<Evaluator> no_evaluator(const TaskOptions&, const TaskModel&) {
  throw internal_error("masked words are evaluated in training");
}
std::unique_ptr<Evaluator> no_predictor(const PredictionRequest&, const TaskOptions&,
                                        const TaskModel&) {
  throw internal_error("masked words are not predicted");
}

TaskOptions nothing_stored(const EncoderConfig&) {
  return {};
}

}  // namespace

TaskTraits masked_traits() {
  return {.kind = TaskKind::mlm,
          .name = "mlm",
          .title = "masked language modelling",
          .hub_task = "fill-mask",
          .head = HeadKind::masked,
          .answers = false,
          .make = make_task,
          .make_objective = make_masked_objective,
          .make_evaluator = no_evaluator,
          .make_predictor = no_predictor,
          .stored_options = nothing_stored};
}

}  // namespace finetune
