// Computes a model's outputs for samples in memory, for example a frozen encoder's features.
#pragma once

#include <functional>
#include <vector>

#include "core/numeric/packed_batch.h"
#include "engine/engine.h"
#include "inference/batch_dispatch.h"

namespace finetune {

// On rank 0, while the other processes serve() the dispatcher: returns the (samples, outputs) of a
// sequence head, in the order of the samples. Equal samples are computed once. Micro-batches have
// up to `tokens` tokens. Calls `poll` between them with the share that is done, and returns an
// empty vector if it returned false.
std::vector<float> sample_outputs(BatchDispatcher& dispatcher, const SampleView& samples, Head head,
                                  int64_t tokens, const std::function<bool(double)>& poll);

}  // namespace finetune
