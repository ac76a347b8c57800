// Options of a layout that depend on each other (declared with all others in options.h).
#pragma once

#include "train/options/options.h"

namespace finetune {

// Error(usage), one line, for options of a pipeline that do not go together. World and model are
// not looked at.
void validate_pipeline(const TrainOptions& options);
// The same of --offload-activations: it is for GPUs, with --recompute. `may_be_gpu`: whether
// --device auto is one.
void validate_offload(const TrainOptions& options, bool may_be_gpu);

}  // namespace finetune
