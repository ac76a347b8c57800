// Tokenized samples to packed micro-batches.
#pragma once

#include <cstdint>
#include <span>

#include "core/packed_batch.h"

namespace finetune {

// Lays the samples `indices` of `set` end to end. `places` are theirs in the global batch; empty:
// 0, 1, ... Reuses out's memory.
void pack(const SampleView& set, std::span<const uint32_t> indices,
          std::span<const uint32_t> places, PackedBatch& out);

}  // namespace finetune
