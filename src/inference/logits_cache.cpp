// The cache's hash table over token sequences, bounded in entries and bytes.
#include "inference/logits_cache.h"

#include <algorithm>
#include <functional>
#include <span>
#include <string_view>

#include "core/error.h"
#include "core/text/counted.h"
#include "data/packing.h"

namespace finetune {
namespace {

// Longer sequences are not cached: they seldom repeat, and need more memory.
constexpr int64_t kLongestCached = 64;
constexpr size_t kSlots = size_t{1} << 15;
constexpr size_t kCachedBytes = size_t{16} << 20;
constexpr size_t kEntryBytes = 256;  // of an entry without its logits, about

size_t hash_of(std::span<const int32_t> ids, uint32_t second) {
  const std::string_view bytes(reinterpret_cast<const char*>(ids.data()), ids.size_bytes());
  return std::hash<std::string_view>()(bytes) ^ second;
}

}  // namespace

LogitsCache::LogitsCache(int64_t outputs)
    : outputs_(size_t(outputs)),
      slots_(
          std::clamp(kCachedBytes / (kEntryBytes + outputs_ * sizeof(float)), size_t{1}, kSlots)) {}

void LogitsCache::begin() {
  if (!pending_.empty()) std::fill(slots_.begin(), slots_.end(), nullptr);
  pending_.clear();
  rows_.clear();
  given_ = 0;
}

void LogitsCache::take(const SampleView& samples, TokenizedSamples& distinct) {
  for (int64_t i = 0; i < samples.size(); ++i) {
    const auto ids =
        samples.ids.subspan(size_t(samples.offsets[size_t(i)]), size_t(samples.length(i)));
    const uint32_t second = samples.second[size_t(i)];
    Entry passing;
    const bool kept = int64_t(ids.size()) <= kLongestCached;
    Entry& entry = kept ? slots_[hash_of(ids, second) % slots_.size()] : passing;
    if (entry && entry->second == second && std::ranges::equal(entry->ids, ids)) {
      ++hits_;
    } else {
      entry = std::make_shared<Known>();
      if (kept) entry->ids.assign(ids.begin(), ids.end());
      entry->second = second;
      append(slice(samples, {i, i + 1}), distinct);
      pending_.push_back(entry);
    }
    rows_.push_back(entry);
  }
}

void LogitsCache::computed(const float* logits, int64_t count) {
  FINETUNE_CHECK(count <= int64_t(pending_.size()));
  for (; count > 0; --count, logits += outputs_) {
    pending_.front()->logits.assign(logits, logits + outputs_);
    pending_.pop_front();
  }
}

void LogitsCache::give(LogitsSink& sink) {
  PackedBatch batch;
  std::vector<float> logits;
  for (; !rows_.empty() && !rows_.front()->logits.empty(); rows_.pop_front()) {
    const std::vector<float>& known = rows_.front()->logits;
    logits.insert(logits.end(), known.begin(), known.end());
    batch.samples.push_back(uint32_t(batch.samples.size()));
    batch.indices.push_back(given_++);
  }
  if (!batch.indices.empty()) sink.add(batch, logits.data());
}

std::string describe_cache_hits(int64_t count) {
  return concat(counted(count, "of them has", "of them have"), " the tokens of an earlier one and ",
                count == 1 ? "was" : "were", " not computed again");
}

}  // namespace finetune
