// Reduce-scatter of a global batch's gradient: the interface, and implementations through the host.
// First this process's virtual shards are added (local_reduce.h), then the sums of all processes
// (subtree_reduce.h). Each owner gets its part of the total.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "distributed/touched_rows.h"
#include "distributed/zero_partition.h"
#include "ops/backend.h"

namespace finetune {

class GradientReduce {
 public:
  virtual ~GradientReduce() = default;
  virtual IndexRange shards() const = 0;  // of this process
  // Returns an arena in the backend's memory for the gradient of this process's next shard. Rows of
  // the word embedding are zero; the dense part contains old values and must be overwritten. push()
  // adds it. Each chunk of the model has its own part of the arenas and its own next shard, so
  // chunks may be at different shards.
  virtual float* leaf(int chunk) = 0;
  virtual void push(const TouchedRows& touched, int chunk) = 0;
  // Called during the backward pass: the work enqueued so far completes the gradient of this layer
  // and of those above. Every pass calls it for each trained layer, from the head down; recorded
  // passes replay it.
  virtual void ready(int /*layer*/) {}
  // Collective, after the last push of each chunk. Afterwards (in the backend's order) sum() holds
  // the sums of this process's part, and all other touched rows are zero.
  virtual void reduce_scatter(const TouchedRows& touched) = 0;
  // An arena in the backend's memory. The user of a sum's rows must reset them to zero.
  virtual float* sum() const = 0;
};

// Collective. Arenas of `elements` floats, K `shards`. `chunks`: elements_of_chunks() (buckets.h);
// the first one includes the word embedding. Empty means one chunk. Not staged: the arenas are in
// memory shared by the host's processes, or in the backend's memory with one process. Staged: each
// process has its arenas in the backend's memory; the sums of its subtrees go through arenas on the
// host, where owners add them in the same order, with the same bits.
std::unique_ptr<GradientReduce> make_gradient_reduce(Backend& backend, Communicator& comm,
                                                     const ZeroPartition& partition,
                                                     int64_t elements, int64_t shards, bool staged,
                                                     std::vector<IndexRange> chunks = {});

}  // namespace finetune
