// A packed micro-batch: T real tokens of B sequences laid end to end, without padding. data/ makes
// it for the model. On a backend that replays work, the last sequences may be fillers that only
// complete the shape (data/packing.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace finetune {

struct PackedBatch {
  std::vector<int32_t> ids;             // (T)
  std::vector<int32_t> types;           // (T) 0 or 1
  std::vector<uint32_t> positions;      // (T) inside the sequence
  std::vector<uint32_t> token_samples;  // (T) samples[] of the token's sequence
  std::vector<int32_t> order;           // (T) token indices sorted by id, equal ids in order
  std::vector<int32_t> offsets;         // (B+1) sequence b owns tokens [offsets[b], offsets[b+1])
  std::vector<uint32_t> samples;        // (B) place in the global batch; selects the dropout mask
  std::vector<uint32_t> indices;        // (B) the sample's number in its data set
  std::vector<int32_t> scored;   // (M) positions of tokens to predict, ascending; for tasks that
  std::vector<int32_t> targets;  // (M) predict tokens, with these ids
  std::vector<float> weights;    // factors of the samples' losses; empty: all 1
  int64_t max_length = 0;        // at least the longest sequence's length
  int64_t fillers = 0;           // number of sequences at the end that are fillers

  int64_t tokens() const { return int64_t(ids.size()); }
  int64_t sequences() const { return int64_t(samples.size()); }
};

// Tokenized samples in flat arrays: sample i owns ids [offsets[i], offsets[i+1]), special tokens
// included. Token types are 0 before second[i] (counted from the sample's first token) and 1 from
// there on. A view, because the samples may be in memory shared by processes.
struct SampleView {
  std::span<const int32_t> ids;
  std::span<const int64_t> offsets;  // (N+1); may be empty if there are no samples
  std::span<const uint32_t> second;  // (N)
  // Empty, or for each id the id to predict at its place; -1: none.
  std::span<const int32_t> targets = {};

  int64_t size() const { return int64_t(second.size()); }
  int64_t length(int64_t i) const { return offsets[size_t(i) + 1] - offsets[size_t(i)]; }
  int64_t longest() const {
    int64_t most = 0;
    for (int64_t i = 0; i < size(); ++i) most = std::max(most, length(i));
    return most;
  }
};

struct TokenizedSamples {
  std::vector<int32_t> ids;
  std::vector<int64_t> offsets{0};
  std::vector<uint32_t> second;
  std::vector<int32_t> targets;  // see SampleView

  operator SampleView() const& { return {ids, offsets, second, targets}; }
  operator SampleView() const&& = delete;  // would dangle
  int64_t size() const { return int64_t(second.size()); }
  int64_t length(int64_t i) const { return offsets[size_t(i) + 1] - offsets[size_t(i)]; }
};

}  // namespace finetune
