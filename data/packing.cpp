// Packs samples end to end, and pads micro-batches to a few recurring shapes.
#include "data/packing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "core/error.h"
#include "core/per_thread.h"

namespace finetune {
namespace {

constexpr int64_t kSmallestSequenceStep = 4, kSmallestTokenStep = 16;
constexpr int64_t kTokenStep = 128;  // tile size of matrix products in large micro-batches
// Tile size of attention, and lengths below it whose heads share blocks
// (ops/cuda/attention/attention_tiles.h).
constexpr int64_t kLengthStep = 64, kShortLengths[] = {16, 32};
constexpr uint32_t kNoSample = 0xFFFFFFFFu;  // dropout stream of tokens without effect

int64_t round_up(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}

int64_t power_of_two(int64_t n) {  // the largest power of two <= n
  return int64_t(std::bit_floor(uint64_t(n)));
}

// Token counts are rounded up to a multiple of this: 1/16 of the power of two below, later 1/64.
int64_t token_step(int64_t tokens) {
  const int64_t power = power_of_two(tokens);
  return std::max(kSmallestTokenStep, std::min(power / 16, std::max(kTokenStep, power / 64)));
}

// Sequence counts are rounded up to a multiple of this. Filler sequences cost one token each.
int64_t sequence_step(int64_t sequences) {
  return std::max(kSmallestSequenceStep, power_of_two(sequences) / 16);
}

// Adds at least one filler sequence, which takes the tokens that are left over.
int64_t filled_sequences(int64_t sequences) {
  return round_up(sequences + 1, sequence_step(sequences + 1));
}

int64_t filled_tokens(int64_t tokens) {
  return round_up(tokens, token_step(tokens));
}

int64_t filled_length(int64_t longest) {
  for (const int64_t length : kShortLengths) {
    if (longest <= length) return length;
  }
  return round_up(longest, kLengthStep);
}

constexpr int kMostDigitBits = 9;  // two passes for vocabularies up to 262,144

// Least-significant-digit radix sort: order = token indices sorted by id, equal ids in input order.
void sort_by_id(const std::vector<int32_t>& ids, std::vector<int32_t>& order) {
  struct Kept {  // static, so that a step allocates nothing
    std::vector<int32_t> order;
  };
  std::vector<int32_t>& other = per_thread<Kept>().order;
  const size_t count = ids.size();
  order.resize(count);
  other.resize(count);
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    order[i] = int32_t(i);
    largest = std::max(largest, uint32_t(ids[i]));
  }
  const int bits = std::bit_width(largest);
  const int passes = (bits + kMostDigitBits - 1) / kMostDigitBits;
  if (passes == 0) return;  // every id is 0
  const int digit_bits = (bits + passes - 1) / passes;
  const uint32_t mask = (1u << digit_bits) - 1;
  for (int shift = 0; shift < bits; shift += digit_bits) {
    std::array<uint32_t, (1u << kMostDigitBits) + 1> begin{};
    for (int32_t id : ids) ++begin[((uint32_t(id) >> shift) & mask) + 1];
    for (uint32_t digit = 0; digit <= mask; ++digit) begin[digit + 1] += begin[digit];
    for (int32_t index : order) {
      other[begin[(uint32_t(ids[size_t(index)]) >> shift) & mask]++] = index;
    }
    order.swap(other);
  }
}

}  // namespace

void pack(const SampleView& set, std::span<const uint32_t> indices,
          std::span<const uint32_t> places, PackedBatch& out, TokenOrder order) {
  FINETUNE_CHECK(places.empty() || places.size() == indices.size());
  const size_t sequences = indices.size();
  out.offsets.resize(sequences + 1);
  out.samples.resize(sequences);
  out.indices.assign(indices.begin(), indices.end());
  out.max_length = 0;
  int64_t tokens = 0;
  for (size_t b = 0; b < sequences; ++b) {
    FINETUNE_CHECK(indices[b] < set.size());
    int64_t length = set.length(indices[b]);
    out.offsets[b] = int32_t(tokens);
    out.samples[b] = places.empty() ? uint32_t(b) : places[b];
    out.max_length = std::max(out.max_length, length);
    tokens += length;
    FINETUNE_CHECK(tokens <= std::numeric_limits<int32_t>::max());
  }
  out.offsets[sequences] = int32_t(tokens);

  out.ids.resize(size_t(tokens));
  out.types.resize(size_t(tokens));
  out.positions.resize(size_t(tokens));
  out.token_samples.resize(size_t(tokens));
  out.scored.clear();
  out.targets.clear();
  out.weights.clear();
  for (size_t b = 0; b < sequences; ++b) {
    const size_t sample = indices[b];
    const size_t length = size_t(set.length(int64_t(sample)));
    const size_t begin = size_t(out.offsets[b]);
    const int32_t* ids = set.ids.data() + set.offsets[sample];
    for (size_t i = 0; i < length; ++i) {
      out.ids[begin + i] = ids[i];
      out.types[begin + i] = i >= set.second[sample];
      out.positions[begin + i] = uint32_t(i);
      out.token_samples[begin + i] = out.samples[b];
    }
    if (set.targets.empty()) continue;
    const int32_t* targets = set.targets.data() + set.offsets[sample];
    for (size_t i = 0; i < length; ++i) {
      if (targets[i] < 0) continue;
      out.scored.push_back(int32_t(begin + i));
      out.targets.push_back(targets[i]);
    }
  }
  out.order.clear();
  if (order == TokenOrder::sorted) sort_by_id(out.ids, out.order);
  out.fillers = 0;
}

void sort_tokens(PackedBatch& batch) {
  sort_by_id(batch.ids, batch.order);
}

BatchShape filled_shape(BatchShape shape) {
  if (shape.tokens == 0) return shape;
  const int64_t sequences = filled_sequences(shape.sequences);
  const int64_t fillers = sequences - shape.sequences;
  const int64_t tokens = filled_tokens(shape.tokens + fillers);
  const int64_t longest = (tokens - shape.tokens + fillers - 1) / fillers;
  return {tokens, sequences, std::min(tokens, filled_length(std::max(shape.max_length, longest)))};
}

void fill_up(PackedBatch& batch) {
  FINETUNE_CHECK(batch.fillers == 0);
  const BatchShape shape = filled_shape({batch.tokens(), batch.sequences(), batch.max_length});
  if (shape.sequences == batch.sequences()) return;
  // Fillers repeat the largest id, so they belong at the end of the tokens sorted by id.
  const int32_t id = *std::max_element(batch.ids.begin(), batch.ids.end());
  const size_t tokens = size_t(shape.tokens);
  batch.fillers = shape.sequences - batch.sequences();
  if (!batch.order.empty()) {
    for (size_t t = batch.ids.size(); t < tokens; ++t) batch.order.push_back(int32_t(t));
  }
  const int64_t more = shape.tokens - batch.tokens(), before = batch.offsets.back();
  for (int64_t i = 1; i <= batch.fillers; ++i) {
    batch.offsets.push_back(int32_t(before + (more * i + batch.fillers - 1) / batch.fillers));
  }
  batch.ids.resize(tokens, id);
  batch.types.resize(tokens, 0);
  batch.positions.resize(tokens, 0);
  batch.token_samples.resize(tokens, kNoSample);
  batch.samples.resize(size_t(shape.sequences), kNoSample);
  batch.indices.resize(size_t(shape.sequences), batch.indices.back());
  batch.max_length = shape.max_length;
}

BatchShape largest_filled(BatchShape limits) {
  const int64_t tokens = filled_tokens(limits.tokens + sequence_step(limits.sequences + 1));
  const int64_t longest = std::max(limits.max_length, token_step(tokens));
  return {tokens, filled_sequences(limits.sequences), filled_length(longest)};
}

SampleView slice(const SampleView& samples, IndexRange range) {
  const auto begin = size_t(range.begin), count = size_t(range.size());
  return {samples.ids, samples.offsets.subspan(begin, count + 1),
          samples.second.subspan(begin, count), samples.targets};
}

void append(const SampleView& from, TokenizedSamples& to) {
  if (from.size() == 0) return;
  const int64_t begin = from.offsets.front(), shift = to.offsets.back() - begin;
  to.ids.insert(to.ids.end(), from.ids.begin() + begin, from.ids.begin() + from.offsets.back());
  to.second.insert(to.second.end(), from.second.begin(), from.second.end());
  if (!from.targets.empty()) {
    to.targets.insert(to.targets.end(), from.targets.begin() + begin,
                      from.targets.begin() + from.offsets.back());
  }
  for (const int64_t end : from.offsets.subspan(1)) to.offsets.push_back(shift + end);
}

}  // namespace finetune
