// The end of a run: the best model's export, predictions, metrics, facts and gates.
#pragma once

#include "train/session.h"
#include "train/trainer.h"

namespace finetune {

// Whether all weights are finite, whoever has them; the same answer for all. Collective.
bool weights_are_finite(Session& session);

// Collective; rank 0 alone has a result. `metrics`: what the loop measured. `best_metrics` and
// `best_evaluation`: of state.best_step, if that evaluation happened in this process, else empty
// and null (it is then done again).
TrainOutcome finish_run(Session& session, Metrics metrics, Metrics best_metrics,
                        Evaluator* best_evaluation);

// Of a run that had ended before (--resume): its metrics, its gates checked again.
TrainOutcome finished_outcome(const Session& session);

}  // namespace finetune
