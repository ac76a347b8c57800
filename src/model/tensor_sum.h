// The sum over a layer's tensor shards: products cut by their inner dimension leave one partial
// (R, H) of f32 a shard, which are added in one fixed tree (core/numeric/subtrees.h). So a sum's
// bits depend on the number of shards alone, not on which process computed the partials.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/numeric/subtrees.h"
#include "core/numeric/tensor.h"
#include "ops/backend.h"

namespace finetune {

class TensorSum {
 public:
  virtual ~TensorSum() = default;
  // `partials`: one for each shard of this process in order; contiguous, of equal sizes, in backend
  // memory. The sum of all V shards is then in the first; the others are overwritten. Collective
  // among the tensor ranks, which make their calls in the same order with the same sizes. Error: a
  // tensor rank is lost.
  virtual void add(Backend& backend, std::span<const Tensor> partials) = 0;
  // Whether add() may be part of work that is replayed (Backend::replay).
  virtual bool may_be_replayed() const { return false; }
};

// Adds only these partials, in this order, by Backend::merge.
void add_partials(Backend& backend, std::span<const Tensor> partials,
                  std::span<const TreeAddition> order);

// For a process that has all shards.
std::unique_ptr<TensorSum> make_solo_tensor_sum(int64_t tensor_shards);

}  // namespace finetune
