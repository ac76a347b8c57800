// Reduce-scatter of a global batch's gradient: the interface, and its ways through the host.
// First this process's virtual shards (local_reduce.h), then the sum over all processes
// (subtree_reduce.h), of which each owner has its part.
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
  virtual IndexRange shards() const = 0;  // this process's
  // Arena in the backend's memory for the gradient of this process's next shard: zero in all rows
  // of the word embedding; the dense part is what an earlier step has left, to be overwritten.
  // push() takes it in. Each chunk of the model has its own part of the arenas and its own next
  // shard: one may be at a later shard than another.
  virtual float* leaf(int chunk) = 0;
  virtual void push(const TouchedRows& touched, int chunk) = 0;
  // During the backward pass into the leaf: as far as the backend's work is now, the gradient of
  // this layer is complete, and those of the layers above. Every pass says so of each layer that is
  // trained, from the head down, and may be replayed.
  virtual void ready(int /*layer*/) {}
  // Collective, after the last push of each chunk. Afterwards (in the backend's order) the sums of
  // what this process owns are in sum(), and all other rows that the batch has touched are zero.
  virtual void reduce_scatter(const TouchedRows& touched) = 0;
  // An arena in the backend's memory. Who uses the rows of a sum leaves zeros.
  virtual float* sum() const = 0;
};

// Collective. Arenas of `elements` floats, K `shards`; dense elements of each `chunk` as
// elements_of_chunks() (buckets.h) has them, the first with the word embedding, or none: one chunk.
// Not staged: in memory that the processes of
// a host share, or of one process on whatever backend. Staged: each process has its arenas in the
// backend's memory alone, and its subtrees' sums go through arenas of the host, where owners add
// them: same order, same bits.
std::unique_ptr<GradientReduce> make_gradient_reduce(Backend& backend, Communicator& comm,
                                                     const ZeroPartition& partition,
                                                     int64_t elements, int64_t shards, bool staged,
                                                     std::vector<IndexRange> chunks = {});

}  // namespace finetune
