// Gives rank 0 access to the whole model's tensors, assembled from all processes' parts.
#pragma once

#include <functional>
#include <vector>

#include "comm/communicator.h"
#include "distributed/tensors/held_parts.h"
#include "ops/backend.h"

namespace finetune {

// Collective. Calls action(tensors) on rank 0, which may visit the tensors of `whole` in any order;
// the other processes send and receive their parts. Afterwards all parts of filled tensors are
// complete.
//
// `own`: the parts that this process holds and reports, in memory of `backend`, until this returns.
// If several processes hold the same part (replicas), one is read and all are written. Rank 0 needs
// memory for two pieces beside its own parts, the others for one. A piece that lies unchanged in
// rank 0's memory is not copied.
//
// An error of the action ends the command everywhere (agreement.h). Error(internal) if no process
// holds an element of a tensor.
void with_whole_tensors(Communicator& comm, Backend& backend, const ParameterTable& whole,
                        const std::vector<HeldPart>& own,
                        const std::function<void(ModelTensors&)>& action);

}  // namespace finetune
