// One run of a sweep, in this process.
#pragma once

#include "comm/communicator.h"
#include "experiments/sweep/sweep.h"
#include "train/run/shared_inputs.h"

namespace finetune {

// Runs it to its end, or goes on with it, as train --resume would (with `overwrite` in its options,
// anew); its log goes to its log.txt
// alone. What it fails with is in the report; an error of several processes that they have not
// agreed on is thrown, since it ends them all. A run that has ended without a part that its options
// ask for (RunRecord::lost) has failed. `pause_share`, `progress`: as RunInTurn has them.
// Collective; rank 0 alone has the report's texts and metrics, all have its status and code.
RunReport run_in_turn(const SweepRun& run, Communicator& comm, SharedInputs& inputs,
                      double pause_share = 0, const ProgressReceiver& progress = {});

}  // namespace finetune
