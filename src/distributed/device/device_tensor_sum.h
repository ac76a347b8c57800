// The sum over tensor shards (model/tensor_sum.h) whose tensor ranks have a device each.
// Of each rank's equal share of the elements it gets the other ranks' subtrees, adds all in the
// tree's order and sends the sum to all: the bits are those of one process that has all shards.
#pragma once

#include <cstdint>
#include <memory>

#include "distributed/device/layout_peers.h"
#include "model/tensor_sum.h"

namespace finetune {

// `comm`: the tensor ranks, as `peers`; rank t has shards part(tensor_shards, comm.size(), t). All
// must outlive the sum. most_floats: of a partial. comm counts as sent what others get. Without
// peers the sum is made in memory of the host (reduce/tensor_ranks_sum.h). Collective.
std::unique_ptr<TensorSum> make_tensor_sum(Backend& backend, Communicator& comm, GroupPeers* peers,
                                           int64_t tensor_shards, int64_t most_floats);
// Memory of the sum on the device of one of so many ranks, in floats.
int64_t device_tensor_sum_floats(int rank, int ranks, int64_t tensor_shards, int64_t most_floats);

}  // namespace finetune
