// Chooses the machine of a run, and resolves the options that depend on it and on the data.
#pragma once

#include "train/prepare/reading.h"

namespace finetune {

// Chooses device, precision and threads. Sets the precision in `options`. Collective.
ChosenMachine choose_machine(Communicator& world, TrainOptions& options, const Output& output);

struct Resolved {
  int64_t step = -1;                 // of the checkpoint to continue; -1: there is none
  std::vector<std::string> remarks;  // for the log
};

// Resolves the options that depend on the data, and the model's configuration. Rank 0 knows the
// data and tells the others. The task must have its samples. Collective.
Resolved resolve_options(const Machine& machine, const Backend& backend, const Reading& reading,
                         const Output& output, Settings& settings);

}  // namespace finetune
