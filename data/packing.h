// Tokenized samples to packed micro-batches.
#pragma once

#include <cstdint>
#include <span>

#include "core/numeric/packed_batch.h"
#include "data/plan.h"

namespace finetune {

// Lays the samples `indices` of `set` end to end. `places` are theirs in the global batch; empty:
// 0, 1, ... Tokens with a target are scored. Reuses out's memory.
void pack(const SampleView& set, std::span<const uint32_t> indices,
          std::span<const uint32_t> places, PackedBatch& out);

// The batch's `order` for its ids, where these have been changed.
void sort_tokens(PackedBatch& batch);

// What says of a micro-batch how its work is cut.
struct BatchShape {
  int64_t tokens = 0;
  int64_t sequences = 0;
  int64_t max_length = 0;
  friend bool operator==(const BatchShape&, const BatchShape&) = default;
};

// Adds sequences that are no samples (PackedBatch::fillers), so that micro-batches of like size
// have one shape: work recorded for one of them can be replayed for all (Backend::replay). They
// repeat a token that the batch has, at position 0, and must get a LossScale of 0: then their
// gradients are zeros. On average that is some ten tokens more up to 500, about a thirtieth up to
// 2,048, 64 up to 16,384, less than a hundredth beyond.
BatchShape filled_shape(BatchShape shape);
void fill_up(PackedBatch& batch);
// No micro-batch within these limits is larger, filled up or not.
BatchShape largest_filled(BatchShape limits);

// Samples [range.begin, range.end) of `samples`, in the same memory.
SampleView slice(const SampleView& samples, IndexRange range);
// Copies them behind what `to` has.
void append(const SampleView& from, TokenizedSamples& to);

}  // namespace finetune
