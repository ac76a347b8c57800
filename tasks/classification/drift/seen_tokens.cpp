// Marks hashes of tokens, and halves the table while few places are marked.
#include "tasks/classification/drift/seen_tokens.h"

#include <algorithm>
#include <bit>

#include "tasks/classification/ngrams/ngram_cutter.h"

namespace finetune {
namespace {

constexpr uint64_t kSeed = 0xC2B2AE3D27D4EB4F;
constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

template <typename Visit>
void SeenTokens::for_each(std::span<const int32_t> sample, Visit&& visit) const {
  uint64_t before = 0;
  bool has_before = false, knows_before = false;
  for (size_t i = 1; i + 1 < sample.size(); ++i) {
    const bool is_known = sample[i] != unknown_;
    const uint64_t hash = extended_hash(kSeed, uint64_t(sample[i]));
    visit(hash, is_known);
    if (has_before) visit(extended_hash(before, uint64_t(sample[i])), is_known && knows_before);
    before = hash;
    has_before = true;
    knows_before = is_known;
  }
}

SeenTokens::SeenTokens(const SampleView& samples, int32_t unknown)
    : unknown_(unknown), places_(kMostPlaces) {
  for (int64_t i = 0; i < samples.size(); ++i) {
    for_each(samples.ids.subspan(size_t(samples.offsets[size_t(i)]), size_t(samples.length(i))),
             [&](uint64_t hash, bool is_known) {
               if (is_known) places_[hash % places_.size()] = 1;
             });
  }
  while (places_.size() > kLeastPlaces && fold_up()) continue;
}

// A hash's place in half as many places follows from its place in this table.
bool SeenTokens::fold_up() {
  const size_t half = places_.size() / 2;
  std::vector<uint8_t> fewer(half);
  for (size_t i = 0; i < half; ++i) fewer[i] = places_[i] | places_[i + half];
  if (half - size_t(std::count(fewer.begin(), fewer.end(), 0)) > half / 8) return false;
  places_ = std::move(fewer);
  return true;
}

SeenTokens::SeenTokens(std::string_view hex, int32_t unknown) : unknown_(unknown) {
  const size_t size = hex.size() * 4;
  if (!std::has_single_bit(size) || size < kLeastPlaces || size > kMostPlaces) return;
  if (hex.find_first_not_of(kDigits) != hex.npos) return;
  for (const char digit : hex) {
    const size_t four = kDigits.find(digit);
    for (size_t bit = 0; bit < 4; ++bit) places_.push_back((four >> bit) & 1);
  }
}

std::string SeenTokens::hex() const {
  std::string text;
  for (size_t i = 0; i < places_.size(); i += 4) {
    size_t four = 0;
    for (size_t bit = 0; bit < 4; ++bit) four |= size_t(places_[i + bit] != 0) << bit;
    text += kDigits[four];
  }
  return text;
}

SeenTokens::Counts SeenTokens::count(std::span<const int32_t> sample) const {
  Counts counts;
  for_each(sample, [&](uint64_t hash, bool is_known) {
    ++counts.all;
    counts.fresh += !is_known || places_[hash % places_.size()] == 0;
  });
  return counts;
}

}  // namespace finetune
