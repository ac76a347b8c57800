// The sum over tensor shards (model/tensor_sum.h) if each tensor rank has its own device. Each rank
// has an equal share of the elements. It receives the other ranks' subtrees of its share, adds all
// in the tree's order and sends the sum to all ranks. So the bits equal those of a single process
// with all shards.
#pragma once

#include <cstdint>
#include <memory>

#include "distributed/device/layout_peers.h"
#include "model/tensor_sum.h"

namespace finetune {

// Collective. `comm`: the tensor ranks, the same as `peers`; rank t has shards part(tensor_shards,
// comm.size(), t). All arguments must outlive the sum. most_floats: of a partial sum. comm counts
// the bytes that others receive. If `peers` is null, the sum is made in host memory
// (reduce/tensor_ranks_sum.h).
std::unique_ptr<TensorSum> make_tensor_sum(Backend& backend, Communicator& comm, GroupPeers* peers,
                                           int64_t tensor_shards, int64_t most_floats);
// Floats of device memory for the sum on one of `ranks` ranks.
int64_t device_tensor_sum_floats(int rank, int ranks, int64_t tensor_shards, int64_t most_floats);

}  // namespace finetune
