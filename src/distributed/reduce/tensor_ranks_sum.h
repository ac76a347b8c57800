// The sum over tensor shards whose partial sums several tensor ranks have (model/tensor_sum.h).
// Each rank adds its own shards' partial sums as far as the tree allows and puts its largest
// subtrees into memory shared within its host. Each rank has an equal share of the elements, for
// which it adds the host's subtrees. Hosts send their subtrees of a share to its rank, which adds
// all in the tree's order and sends the sum to each host. So the bits equal those of a single
// process with all shards, however the ranks are placed.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/communicator.h"
#include "core/numeric/index_range.h"
#include "model/tensor_sum.h"

namespace finetune {

// Collective. `comm`: the tensor ranks; it must outlive the sum. Rank t has shards
// part(tensor_shards, comm.size(), t). most_floats: of a partial sum. Error(device) as in
// Communicator::allocate_shared(). A lost rank ends the job, as in any collective. comm counts the
// bytes that others receive: shares of its subtrees, and its share of the sum once per receiver.
std::unique_ptr<TensorSum> make_tensor_ranks_sum(Communicator& comm, int64_t tensor_shards,
                                                 int64_t most_floats);

}  // namespace finetune
