// All-gather of updated weights: the interface, and its ways through the host.
// A run's processes compute with copies of the weights. Owners (zero_partition.h) update their
// parts; from here all others get them.
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
  // Collective, after an update: what this process has updated of the dense part, to the others.
  virtual void publish() = 0;
  // Collective, before these rows are used: afterwards (in the backend's order) this process's copy
  // has all that was published, and the touched rows (or all rows) of the word embedding as their
  // owners have them. all_gather_all() waits until it has.
  virtual void all_gather(const TouchedRows& touched) = 0;
  virtual void all_gather_all() = 0;
};

// Of `weights` in the backend's memory. Not staged: one copy for the processes of a host, which
// owners send to other hosts. Staged: a copy for each process, and one in memory of the host
// through which parts go. `words_move`: the word embedding is trained. Collective on the host. comm
// counts as sent what others get of an update, through memory of the host too.
std::unique_ptr<WeightGather> make_weight_gather(Backend& backend, Communicator& comm,
                                                 const ZeroPartition& partition, float* weights,
                                                 bool words_move, bool staged);

}  // namespace finetune
