// Logits of samples that are not trained on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/numeric/packed_batch.h"
#include "model/bert.h"
#include "ops/backend.h"

namespace finetune {

// Forward passes over all samples, in order, in micro-batches of at most max_tokens tokens (a
// longer single sample is one of its own) and max_sequences samples; the device batch and the model
// must have been made for these. Resizes `logits` to (samples, outputs), row-major, for a sequence
// head.
void compute_logits(Backend& backend, Bert& bert, float* weights, DeviceBatch& device,
                    const SampleView& samples, int64_t max_tokens, int64_t max_sequences,
                    std::vector<float>& logits);

}  // namespace finetune
