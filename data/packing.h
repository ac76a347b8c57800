// Tokenized samples to packed micro-batches.
#pragma once

#include <cstdint>
#include <span>

#include "core/packed_batch.h"

namespace finetune {

// Lays the samples `indices` of `set` end to end; sample i of the batch has place first_place + i
// in the global batch. Reuses out's memory.
void pack(const SampleView& set, std::span<const uint32_t> indices, uint32_t first_place,
          PackedBatch& out);

}  // namespace finetune
