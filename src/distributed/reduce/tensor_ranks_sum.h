// The sum over tensor shards whose partials several tensor ranks of one host have (tensor_sum.h).
// Each rank adds what it can of its own shards' partials and puts its largest subtrees into shared
// memory; then each adds an equal share of the elements of all subtrees in the tree's order, and
// all read the sum. So the bits are those of one process that has all shards.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/communicator.h"
#include "core/numeric/index_range.h"
#include "model/tensor_sum.h"

namespace finetune {

// `comm`: the tensor ranks, all on one host, which must outlive the sum; rank t has shards
// part(tensor_shards, comm.size(), t). most_floats: of a partial. Collective; Error(device) as
// Communicator::allocate_shared(). A rank that is lost ends the job, as in any collective. comm
// counts as sent what others read: of its subtrees their shares, of the sum its own to all.
std::unique_ptr<TensorSum> make_shared_tensor_sum(Communicator& comm, int64_t tensor_shards,
                                                  int64_t most_floats);

}  // namespace finetune
