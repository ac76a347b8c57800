// A packed micro-batch: T real tokens of B sequences laid end to end, without padding.
// It travels so from data/ to the model. On a backend that replays work the last sequences may be
// there for the shape alone (data/packing.h).
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
  std::vector<uint32_t> samples;        // (B) place in the global batch: names dropout streams
  std::vector<uint32_t> indices;        // (B) index of the sample in its data set
  std::vector<int32_t> scored;          // (M) tokens whose id is to be told, ascending; of a task
  std::vector<int32_t> targets;         // (M) that has such, with these ids
  std::vector<float> weights;           // of the samples' losses; empty: each is 1
  int64_t max_length = 0;               // of all sequences, or more
  int64_t fillers = 0;                  // so many of the last sequences are no samples

  int64_t tokens() const { return int64_t(ids.size()); }
  int64_t sequences() const { return int64_t(samples.size()); }
};

// Tokenized samples, flat: sample i owns ids [offsets[i], offsets[i+1]), special tokens included.
// Token types are 0 before second[i] (counted from the sample's first token) and 1 from there on.
// What reads samples takes this view: they may lie in memory that processes share.
struct SampleView {
  std::span<const int32_t> ids;
  std::span<const int64_t> offsets;  // (N+1); may be empty where there is no sample
  std::span<const uint32_t> second;  // (N)
  // Empty, or for each id the one that is to be told from its place; -1: none is.
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
  std::vector<int32_t> targets;  // of SampleView

  operator SampleView() const& { return {ids, offsets, second, targets}; }
  operator SampleView() const&& = delete;  // it would be a view of nothing
  int64_t size() const { return int64_t(second.size()); }
  int64_t length(int64_t i) const { return offsets[size_t(i) + 1] - offsets[size_t(i)]; }
};

}  // namespace finetune
