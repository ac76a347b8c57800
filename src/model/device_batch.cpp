// Uploads a packed micro-batch as one block, and gives views of its arrays.
#include "model/device_batch.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace finetune {
namespace {

int64_t padded(int64_t count) {
  return (count + 15) / 16 * 16;
}

// Five arrays over tokens, then six over sequences (offsets have one element more), then three over
// scored tokens.
int64_t total_size(int64_t tokens, int64_t sequences, int64_t scored) {
  return 5 * padded(tokens) + 6 * padded(sequences + 1) + 3 * padded(scored);
}

// Counts each text's tokens from 1. Tokens with `uncounted_id` are not counted and get position 0.
std::vector<uint32_t> counted_positions(const PackedBatch& batch, int32_t uncounted_id) {
  std::vector<uint32_t> positions(batch.ids.size());
  uint32_t count = 0;
  for (size_t t = 0; t < positions.size(); ++t) {
    if (batch.positions[t] == 0) count = 0;
    positions[t] = batch.ids[t] == uncounted_id ? 0 : ++count;
  }
  return positions;
}

}  // namespace

DeviceBatch::DeviceBatch(Backend& backend, int64_t max_tokens, int64_t max_sequences)
    : backend_(backend), max_tokens_(max_tokens), max_sequences_(max_sequences) {
  const int64_t size = words(max_tokens, max_sequences);
  memory_ = backend.allocate(size_t(size) * sizeof(uint32_t));
  host_.reserve(size_t(size));
}

int64_t DeviceBatch::words(int64_t max_tokens, int64_t max_sequences) {
  return total_size(max_tokens, max_sequences, max_tokens);
}

void DeviceBatch::upload(const PackedBatch& batch, float loss_scale,
                         const EmbeddingBlock& embeddings) {
  tokens_ = batch.tokens();
  sequences_ = batch.sequences();
  scored_ = int64_t(batch.scored.size());
  max_length_ = batch.max_length;
  weighted_ = !batch.weights.empty();
  FINETUNE_CHECK(tokens_ <= max_tokens_ && sequences_ <= max_sequences_);
  FINETUNE_CHECK(int64_t(batch.offsets.size()) == sequences_ + 1);
  FINETUNE_CHECK(scored_ <= tokens_ && batch.targets.size() == batch.scored.size());
  host_.assign(size_t(total_size(tokens_, sequences_, scored_)), 0);
  auto host = [this](const uint32_t* place) {
    return host_.begin() + (place - static_cast<const uint32_t*>(memory_.get()));
  };
  auto put = [&](const uint32_t* place, const auto& values) {
    std::copy(values.begin(), values.end(), host(place));
  };
  put(token_array(0), batch.ids);
  if (embeddings.pair_types) put(token_array(1), batch.types);
  first_position_ = embeddings.uncounted_id >= 0;
  put(token_array(2),
      first_position_ ? counted_positions(batch, embeddings.uncounted_id) : batch.positions);
  put(token_array(3), batch.order);
  put(token_array(4), batch.token_samples);
  put(sequence_array(0), batch.offsets);
  std::iota(host(sequence_array(1)), host(sequence_array(1)) + sequences_ + 1, 0u);
  put(sequence_array(2), batch.samples);  // the fourth array, positions of first tokens, stays 0
  const int64_t samples = sequences_ - batch.fillers;
  FINETUNE_CHECK(!weighted_ || int64_t(batch.weights.size()) == samples);
  std::fill_n(host(sequence_array(4)), samples, std::bit_cast<uint32_t>(loss_scale));
  for (int64_t b = 0; weighted_ && b < samples; ++b) {
    const float weight = batch.weights[size_t(b)];
    host(sequence_array(4))[b] = std::bit_cast<uint32_t>(loss_scale * weight);
    host(sequence_array(5))[b] = std::bit_cast<uint32_t>(weight);
  }
  put(scored_array(0), batch.scored);
  put(scored_array(1), batch.targets);
  std::fill_n(host(scored_array(2)), scored_, std::bit_cast<uint32_t>(loss_scale));
  backend_.upload(memory_.get(), host_.data(), host_.size() * sizeof(uint32_t));
}

const uint32_t* DeviceBatch::token_array(int64_t index) const {
  return static_cast<const uint32_t*>(memory_.get()) + index * padded(tokens_);
}

const uint32_t* DeviceBatch::sequence_array(int64_t index) const {
  return token_array(5) + index * padded(sequences_ + 1);
}

const uint32_t* DeviceBatch::scored_array(int64_t index) const {
  return sequence_array(6) + index * padded(scored_);
}

const int32_t* DeviceBatch::ids() const {
  return reinterpret_cast<const int32_t*>(token_array(0));
}
const int32_t* DeviceBatch::types() const {
  return reinterpret_cast<const int32_t*>(token_array(1));
}
const uint32_t* DeviceBatch::positions() const {
  return token_array(2);
}
const int32_t* DeviceBatch::order() const {
  return reinterpret_cast<const int32_t*>(token_array(3));
}
RowNames DeviceBatch::token_names() const {
  return {positions(), token_array(4)};
}

// A sequence's first token lies at its offset.
const int32_t* DeviceBatch::first_rows() const {
  return reinterpret_cast<const int32_t*>(sequence_array(0));
}
const uint32_t* DeviceBatch::samples() const {
  return sequence_array(2);
}
RowNames DeviceBatch::first_names() const {
  return {sequence_array(3), samples()};
}

LossScale DeviceBatch::loss_scale() const {
  return LossScale(reinterpret_cast<const float*>(sequence_array(4)));
}
Tensor DeviceBatch::loss_weights() const {
  if (!weighted_) return {};
  const int64_t place = sequence_array(5) - static_cast<const uint32_t*>(memory_.get());
  return vector(static_cast<float*>(memory_.get()) + place, sequences_);
}

const int32_t* DeviceBatch::scored_rows() const {
  return reinterpret_cast<const int32_t*>(scored_array(0));
}
const int32_t* DeviceBatch::targets() const {
  return reinterpret_cast<const int32_t*>(scored_array(1));
}
LossScale DeviceBatch::scored_loss_scale() const {
  return LossScale(reinterpret_cast<const float*>(scored_array(2)));
}

Segments DeviceBatch::segments() const {
  return {sequences_, max_length_, reinterpret_cast<const int32_t*>(sequence_array(0))};
}

Segments DeviceBatch::first_segments() const {
  return {sequences_, 1, reinterpret_cast<const int32_t*>(sequence_array(1))};
}

int64_t logit_rows(Head head, const DeviceBatch& batch) {
  if (head.kind == HeadKind::masked) return batch.scored();
  return head.kind == HeadKind::sequence ? batch.sequences() : batch.tokens();
}

}  // namespace finetune
