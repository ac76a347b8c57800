// Packs tokenized samples into micro-batches.
#pragma once

#include <cstdint>
#include <span>

#include "core/numeric/packed_batch.h"
#include "data/plan.h"

namespace finetune {

// Whether a micro-batch has its `order`, which only the gradient of the embeddings needs.
enum class TokenOrder { sorted, none };

// Lays the samples `indices` of `set` end to end. `places` are their places in the global batch;
// empty means 0, 1, ... Tokens with a target are scored. Reuses out's memory.
void pack(const SampleView& set, std::span<const uint32_t> indices,
          std::span<const uint32_t> places, PackedBatch& out,
          TokenOrder order = TokenOrder::sorted);

// Recomputes the batch's `order` after its ids have changed.
void sort_tokens(PackedBatch& batch);

// The properties of a micro-batch that decide how its work is divided.
struct BatchShape {
  int64_t tokens = 0;
  int64_t sequences = 0;
  int64_t max_length = 0;
  friend bool operator==(const BatchShape&, const BatchShape&) = default;
};

// Rounds a micro-batch's shape up by adding filler sequences (PackedBatch::fillers), so that
// micro-batches of similar size share one shape and recorded work can be replayed
// (Backend::replay). Fillers repeat a token of the batch at position 0 and must get a LossScale of
// 0; then their gradients are zero. On average this adds about ten tokens up to 500 tokens, 1/30 up
// to 2,048, 64 tokens up to 16,384, and less than 1/100 beyond.
BatchShape filled_shape(BatchShape shape);
void fill_up(PackedBatch& batch);
// The largest shape, with or without fillers, of any micro-batch within these limits.
BatchShape largest_filled(BatchShape limits);

// Returns a view of samples [range.begin, range.end) of `samples`.
SampleView slice(const SampleView& samples, IndexRange range);
// Appends copies of the samples to `to`.
void append(const SampleView& from, TokenizedSamples& to);

}  // namespace finetune
