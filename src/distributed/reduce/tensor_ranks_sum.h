// The sum over tensor shards whose partials several tensor ranks have (model/tensor_sum.h).
// Each rank adds what it can of its own shards' partials and puts its largest subtrees into memory
// that its host shares; of each rank's equal share of the elements the host's subtrees are added
// there. Hosts send their subtrees of a share to its rank, which adds all in the tree's order and
// sends the sum back to each host. So the bits are those of one process that has all shards,
// however the ranks lie on hosts.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/communicator.h"
#include "core/numeric/index_range.h"
#include "model/tensor_sum.h"

namespace finetune {

// `comm`: the tensor ranks, which must outlive the sum; rank t has shards
// part(tensor_shards, comm.size(), t). most_floats: of a partial. Collective; Error(device) as
// Communicator::allocate_shared(). A rank that is lost ends the job, as in any collective. comm
// counts as sent what others get: of its subtrees their shares, of the sum its own to all.
std::unique_ptr<TensorSum> make_tensor_ranks_sum(Communicator& comm, int64_t tensor_shards,
                                                 int64_t most_floats);

}  // namespace finetune
