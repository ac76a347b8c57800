// The end of a run: the best model's export, predictions, metrics, facts and gates.
#pragma once

#include "train/prepare/preparation.h"
#include "train/trainer.h"

namespace finetune {

// Whether all weights of all processes are finite. Collective; the same answer everywhere.
bool weights_are_finite(const Machine& machine, const Learner& learner);

// The sums that the loop kept: "train_loss", "train_runtime", ...
Metrics totals_of(const TrainingRun& run, double runtime, double epochs);

// Exports the best model and writes the run's last files. Only rank 0 gets an outcome. `metrics`:
// metrics of the loop. `best_metrics` and `best_evaluation`: of state.best_step if this process
// evaluated it. Else they are empty and null, and it is evaluated again. Collective.
TrainOutcome finish_run(TrainingRun& run, Metrics metrics, Metrics best_metrics,
                        Evaluator* best_evaluation);

// Rank 0, --resume of a run that had ended: returns its metrics and checks its gates again.
TrainOutcome finished_outcome(const FinishedRun& run);

}  // namespace finetune
