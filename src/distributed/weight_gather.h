// All-gather of updated weights: the interface, and implementations through the host. Processes
// compute with copies of the weights. Owners (zero_partition.h) update their parts, and this sends
// them to the others.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "distributed/touched_rows.h"
#include "distributed/zero_partition.h"
#include "ops/backend.h"

namespace finetune {

class WeightGather {
 public:
  virtual ~WeightGather() = default;
  // Collective, after an update: sends the updated dense part of this process to the others.
  virtual void publish() = 0;
  // Collective, before these rows are used. Afterwards (in the backend's order) this process's copy
  // has everything published, and the owners' values of the touched rows (or of all rows) of the
  // word embedding. all_gather_all() also waits for completion.
  virtual void all_gather(const TouchedRows& touched) = 0;
  virtual void all_gather_all() = 0;
};

// Collective on the host. For `weights` in the backend's memory. Not staged: one copy per host,
// which owners send to other hosts. Staged: a copy per process, and one in host memory through
// which parts go. `words_move`: the word embedding is trained. comm counts the bytes that others
// receive of an update, also through host memory.
std::unique_ptr<WeightGather> make_weight_gather(Backend& backend, Communicator& comm,
                                                 const ZeroPartition& partition, float* weights,
                                                 bool words_move, bool staged);

}  // namespace finetune
