// Finds the number of steps that fits into a time, and says so.
#include "train/recipe/time_budget.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "train/options/option_words.h"

namespace finetune {
namespace {

// The rest is for steps that are slower than the measured ones.
constexpr double kPlannedShare = 0.93;
// With a fitted head one epoch is at least as good as --recipe quick (docs/quality/notes.csv).
constexpr int64_t kFittedEpochs = 1, kRandomEpochs = 3;

int64_t times(int64_t steps, int64_t every) {
  return (steps + every - 1) / every;
}

// "45s", "2m", "1h10m": as --time-budget reads it, rounded up.
std::string budget_word(double seconds) {
  auto s = int64_t(std::ceil(seconds));
  if (s > 60) s = (s + 4) / 5 * 5;
  if (s > 600) s = (s + 59) / 60 * 60;
  std::string text;
  if (s >= 3600) text += concat(s / 3600, "h");
  if (s % 3600 >= 60) text += concat(s % 3600 / 60, "m");
  if (s % 60 > 0 || text.empty()) text += concat(s % 60, "s");
  return text;
}

std::string epochs_of(int64_t steps, const RunSteps& run) {
  const double epochs = double(steps) / double(run.epoch);
  return epochs == std::floor(epochs) ? format_fixed(epochs, 0) : format_fixed(epochs, 1);
}

}  // namespace

double seconds_of(const RunCosts& costs, const RunSteps& run, int64_t steps) {
  double evaluations = 0, checkpoints = double(times(steps, run.save_every));
  if (costs.evaluation > 0) {
    const auto measured = double(times(steps, run.evaluate_every));
    evaluations = measured + (costs.fit > 0 ? 1 : 0);
    checkpoints = std::max(checkpoints, measured);  // each may be the best so far
  }
  return costs.spent + costs.fit + double(steps) * costs.step + evaluations * costs.evaluation +
         checkpoints * costs.checkpoint + costs.end;
}

namespace {

// With the head as it is.
BudgetChoice choice_of_steps(double budget, const RunCosts& costs, const RunSteps& run) {
  const double planned = kPlannedShare * budget;
  int64_t least = 0, most = run.all;  // of the steps: `least` fit, more than `most` do not
  while (least < most) {
    const int64_t middle = least + (most - least + 1) / 2;
    if (seconds_of(costs, run, middle) <= planned)
      least = middle;
    else
      most = middle - 1;
  }
  BudgetChoice choice;
  const int64_t useful =
      std::min(run.all, (costs.fit > 0 ? kFittedEpochs : kRandomEpochs) * run.epoch);
  const double quick = costs.quick ? costs.spent + *costs.quick : HUGE_VAL;
  choice.steps = least;
  choice.is_quick = costs.quick && least < useful && (quick <= planned || least == 0);
  choice.seconds = choice.is_quick ? quick : seconds_of(costs, run, least);
  choice.seconds_of_all = seconds_of(costs, run, run.all) / kPlannedShare;
  choice.seconds_of_more = seconds_of(costs, run, useful) / kPlannedShare;
  return choice;
}

}  // namespace

BudgetChoice choice_within(double budget, const RunCosts& costs, const RunSteps& run) {
  BudgetChoice choice = choice_of_steps(budget, costs, run);
  if (costs.other_fit > 0 && choice.steps < run.all) {
    RunCosts fitted = costs;
    fitted.fit = costs.other_fit;
    RunSteps shorter = run;
    shorter.all = run.all_fitted;
    const double whole = choice.seconds_of_all;
    choice = choice_of_steps(budget, fitted, shorter);
    choice.seconds_of_all = whole;
    choice.fits_head = !choice.is_quick;
  }
  if ((choice.is_quick || choice.steps > 0) && choice.seconds <= budget) return choice;
  const double quick = costs.quick ? costs.spent + *costs.quick : HUGE_VAL;
  const double shortest = std::min(quick, seconds_of(costs, run, 1)) / kPlannedShare;
  throw usage_error("--time-budget: nothing fits into ", budget_word(budget), ": ",
                    format_fixed(costs.spent, 1),
                    " s were needed to begin; the shortest run needs ", budget_word(shortest));
}

BudgetChoice whole_run(const RunCosts& costs, const RunSteps& run) {
  const double seconds = seconds_of(costs, run, run.all);
  return {.steps = run.all, .seconds = seconds, .seconds_of_all = seconds / kPlannedShare};
}

std::string describe_choice(const TrainOptions& options, const BudgetChoice& choice,
                            const RunSteps& run) {
  const std::string begin = concat("--time-budget ", options.time_budget, ": ");
  const std::string about = concat("about ", budget_word(choice.seconds));
  const std::string epochs = epochs_of(run.all, run);
  const std::string all =
      epochs == "1" ? "the whole epoch fits" : concat("all ", epochs, " epochs fit");
  const std::string rest = concat("; ", all, " into ", budget_word(choice.seconds_of_all));
  if (choice.is_quick) {
    return concat(begin, "--recipe quick, ", about, "; training as well fits into ",
                  budget_word(choice.seconds_of_more), rest);
  }
  if (choice.steps == run.all && choice.seconds > parse_duration(options.time_budget, "")) {
    return concat(begin, "the given length takes ", about, " and will be cut", rest);
  }
  if (choice.steps == run.all) return concat(begin, all, ", ", about, "; more time buys nothing");
  const std::string taken = epochs_of(choice.steps, run);
  return concat(begin, "--recipe ", options.recipe, choice.fits_head ? " --head-init fit" : "",
                " --max-steps ", choice.steps, ", ", taken, taken == "1" ? " epoch, " : " epochs, ",
                about, rest);
}

}  // namespace finetune
