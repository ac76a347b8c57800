// Trains one run of a sweep in this process.
#pragma once

#include "comm/communicator.h"
#include "experiments/sweep/sweep.h"
#include "train/run/shared_inputs.h"

namespace finetune {

// Starts or resumes the run, as train --resume does; with `overwrite` in its options it starts
// again. Its log goes to its log.txt only. The report has the run's error. An error on which
// several processes have not agreed is thrown, since it ends all of them. A run that ended without
// a part that its options ask for (RunRecord::lost) has failed. RunInTurn explains `pause_share`
// and `progress`. Collective: all ranks get status and code, only rank 0 gets texts and metrics.
RunReport run_in_turn(const SweepRun& run, Communicator& comm, SharedInputs& inputs,
                      double pause_share = 0, const ProgressReceiver& progress = {});

}  // namespace finetune
