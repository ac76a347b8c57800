// The whole model's tensors on rank 0, put together from what every process has of them.
#pragma once

#include <functional>
#include <vector>

#include "comm/communicator.h"
#include "distributed/tensors/held_parts.h"
#include "ops/backend.h"

namespace finetune {

// Collective. action(tensors) on rank 0, which goes through the tensors of `whole` in any order;
// the others give and take what it comes to. Afterwards all parts that were filled are complete.
//
// `own`: what this process has and speaks for, in memory of `backend`, until this returns. Several
// may have the same (replicas): then it is read from one of them and written to all. Rank 0 needs
// memory for two pieces beside its own parts, the others for one; what lies in rank 0's memory as
// the tensor has it is not copied.
//
// An error of the action ends the command everywhere (agreement.h). Error(internal) if nobody has
// an element of a tensor.
void with_whole_tensors(Communicator& comm, Backend& backend, const ParameterTable& whole,
                        const std::vector<HeldPart>& own,
                        const std::function<void(ModelTensors&)>& action);

}  // namespace finetune
