// Measures, chooses on rank 0, and tells the others.
#include "train/prepare/budget.h"

#include <algorithm>

#include "comm/agreement.h"
#include "core/process_stats.h"
#include "engine/pooled_weights.h"
#include "tasks/baseline.h"
#include "train/prepare/trial.h"
#include "train/quick/quick_start.h"
#include "train/recipe/recipe.h"

namespace finetune {
namespace {

// Of the budget: steps, and as long the evaluation, are measured.
constexpr double kMeasuredShare = 0.03, kLeastMeasured = 0.3, kMostMeasured = 10;

// Whether a head that begins at random only since the rows are many could begin as a fit.
bool can_fit(TrainOptions options, const Task& task, const EncoderConfig& config) {
  if (task.kind() != TaskKind::classification || !has_one_label(options)) return false;
  if (options.head_init != "auto" || recipe_of(options) != "auto") return false;
  options.head_init = "fit";
  try {
    return resolved_head_init(options, task, config) == "fit";
  } catch (const Error&) {
    return false;
  }
}

RunSteps steps_of(const Settings& settings, int64_t samples, RecipeFacts facts) {
  const TrainOptions& o = settings.options;
  const int64_t epoch = steps_per_epoch(samples, *o.batch_size);
  facts.fits_head = true;
  const auto all_fitted = int64_t(*recipe_auto(facts).epochs) * epoch;
  return {settings.schedule.total_steps, epoch, o.eval_every.value_or(epoch),
          o.save_every.value_or(epoch), all_fitted};
}

// What rank 0 decides.
struct Decision {
  int64_t is_quick = 0, fits_head = 0, max_steps = 0;  // 0: the length stays
  double last_step_by = 0;
};

}  // namespace

std::string fit_to_budget(const Context& context, const Machine& machine, const Reading& reading,
                          const TrainingArrays& arrays, Settings& settings, TrainOptions& options) {
  Communicator& world = machine.world;
  Task* task = context.leads() ? reading.inputs.task.get() : nullptr;
  world.set_patient(!context.leads());
  agree_on_errors(world, [&] {
    if (task && settings.has_eval) task->baselines();  // kept: the run's end takes them
  });
  world.set_patient(false);
  const double budget = settings.ends_by - settings.began;
  const double most = std::clamp(kMeasuredShare * budget, kLeastMeasured, kMostMeasured);
  RunCosts costs =
      measured_costs(context, machine, settings, arrays, task, reading.model.source.get(), most);
  Decision decision;
  std::string line;
  agree_on_errors(world, [&] {
    if (!context.leads()) return;
    costs.spent += seconds_since_start() - settings.began;
    if (!can_be_quick(options, *task, settings.config)) costs.quick.reset();
    if (!can_fit(options, *task, settings.config)) costs.other_fit = 0;
    const RunSteps run = steps_of(settings, arrays.samples.size(),
                                  recipe_facts(settings.options, *task, settings.config));
    const bool is_given = options.epochs || options.max_steps;
    const BudgetChoice choice =
        is_given ? whole_run(costs, run) : choice_within(budget, costs, run);
    line = describe_choice(settings.options, choice, run);
    decision.is_quick = choice.is_quick;
    decision.fits_head = choice.fits_head;
    if (!choice.is_quick && choice.steps < run.all) decision.max_steps = choice.steps;
    const double needed = costs.evaluation + 2 * costs.checkpoint + costs.end + costs.step;
    decision.last_step_by = std::max(settings.began + 1e-9, settings.ends_by - needed);
  });
  world.broadcast(&decision, sizeof decision, 0);
  options.recipe = decision.is_quick ? kQuickWord : settings.options.recipe;
  if (decision.fits_head) options.head_init = "fit";
  if (decision.max_steps > 0) options.max_steps = decision.max_steps;
  settings.last_step_by = decision.last_step_by;
  return line;
}

void keep_budget(Settings& settings) {
  constexpr double kStepsShare = 0.8;  // the rest: an evaluation and the model's files
  settings.last_step_by = settings.began + kStepsShare * (settings.ends_by - settings.began);
}

}  // namespace finetune
