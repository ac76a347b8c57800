// The end of a run: the best model's export, predictions, metrics, facts and gates.
#pragma once

#include "train/session.h"
#include "train/trainer.h"

namespace finetune {

// `metrics`: what the loop measured. `best_metrics` and `best_evaluation`: of state.best_step, if
// that evaluation happened in this process, else empty and null (it is then done again).
TrainOutcome finish_run(Session& session, Metrics metrics, Metrics best_metrics,
                        Evaluation* best_evaluation);

}  // namespace finetune
