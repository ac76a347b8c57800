// --time-budget: chooses how long to train so that the whole command ends within a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/options/options.h"

namespace finetune {

// Seconds that the parts of a run take on this machine.
struct RunCosts {
  double spent = 0;       // until the training can begin; without the fit of a head
  double fit = 0;         // of a head that begins as a fit, with the frozen encoder's features
  double other_fit = 0;   // of a head that could begin so and begins at random; 0: it cannot
  double step = 0;        // of a mean training step
  double evaluation = 0;  // of all evaluation rows; 0: there are none
  double checkpoint = 0;  // each
  double end = 0;         // calibration, export, exit
  std::optional<double> quick;  // of --recipe quick, without `spent`; nothing: it is not possible
};

// Steps of the run without a budget.
struct RunSteps {
  int64_t all = 1, epoch = 1;
  int64_t evaluate_every = 1, save_every = 1;
  int64_t all_fitted = 1;  // with a fitted head
};

// Seconds of the whole command with this number of steps.
double seconds_of(const RunCosts& costs, const RunSteps& run, int64_t steps);

struct BudgetChoice {
  bool is_quick = false;
  bool fits_head = false;      // instead of a random head
  int64_t steps = 0;           // of a run that trains
  double seconds = 0;          // of the whole command
  double seconds_of_all = 0;   // of the command without a budget
  double seconds_of_more = 0;  // of the shortest run that trains, if the choice is quick
};

// The steps that fit into 93 % of the budget, with a fitted head where not all fit; --recipe quick
// where less than an epoch fits (of a head that must be random: three), since quick is as good
// then. Error(usage) if nothing fits.
BudgetChoice choice_within(double budget, const RunCosts& costs, const RunSteps& run);
// All steps, whatever they cost.
BudgetChoice whole_run(const RunCosts& costs, const RunSteps& run);

// What was chosen, as options that repeat it, and what more time would buy; for the log.
std::string describe_choice(const TrainOptions& options, const BudgetChoice& choice,
                            const RunSteps& run);

}  // namespace finetune
