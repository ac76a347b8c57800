// Memory probe: passes through a two-layer BERT measure what libraries and threads take at work.
// Generated kernels, packed operands of every thread, stacks: none of it can be told from outside
// of the libraries, some of it is 20 MiB for every thread, and it stays.
#pragma once

#include "train/plan/workload.h"

namespace finetune {

// In micro-batches of the run's largest sizes, or as large as a bounded memory allows, with as many
// threads as are set. The pass's own memory is gone afterwards.
void probe_memory(Backend& backend, EncoderConfig config, Head head, int64_t tensor_shards,
                  const Workload& work, bool recompute);

}  // namespace finetune
