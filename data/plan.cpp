// Shuffle, global batches, shards and micro-batches as pure functions of seed and sizes.
#include "data/plan.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

#include "core/error.h"
#include "core/numeric/philox.h"

namespace finetune {
namespace {

__extension__ using Uint128 = unsigned __int128;

}  // namespace

// Fisher-Yates. The 64 random bits of element i are a pure function of (key, epoch, i). The high
// half of the 64 x 64 bit product is uniform up to a bias of count / 2^64.
std::vector<uint32_t> permutation(int64_t count, uint64_t seed, RandomUse use, int64_t epoch) {
  const PhiloxKey key = derive_key(seed, uint32_t(use));
  FINETUNE_CHECK(count >= 0 && count <= int64_t(std::numeric_limits<uint32_t>::max()));
  std::vector<uint32_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0u);
  for (uint64_t i = uint64_t(count); i-- > 1;) {
    PhiloxBlock random =
        philox(key, {uint32_t(i), 0, uint32_t(epoch), uint32_t(uint64_t(epoch) >> 32)});
    uint64_t bits = uint64_t(random[0]) << 32 | random[1];
    uint64_t j = uint64_t((Uint128(bits) * (i + 1)) >> 64);
    std::swap(order[i], order[j]);
  }
  return order;
}

std::vector<uint32_t> epoch_order(int64_t count, uint64_t seed, int64_t epoch, bool shuffle) {
  if (shuffle) return permutation(count, seed, RandomUse::shuffle, epoch);
  std::vector<uint32_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

int64_t steps_per_epoch(int64_t count, int64_t batch_size) {
  FINETUNE_CHECK(count >= 0 && batch_size > 0);
  return count / batch_size + (count % batch_size != 0);
}

IndexRange batch_range(int64_t count, int64_t batch_size, int64_t step_in_epoch) {
  FINETUNE_CHECK(step_in_epoch >= 0 && step_in_epoch < steps_per_epoch(count, batch_size));
  int64_t begin = step_in_epoch * batch_size;
  return {begin, begin + std::min(batch_size, count - begin)};
}

std::vector<uint32_t> shard_order(std::span<const int64_t> lengths, int64_t shards) {
  const int64_t count = int64_t(lengths.size());
  std::vector<uint32_t> places(lengths.size());
  std::iota(places.begin(), places.end(), 0u);
  if (shards == 1) return places;
  std::stable_sort(places.begin(), places.end(),
                   [&](uint32_t a, uint32_t b) { return lengths[size_t(a)] > lengths[size_t(b)]; });
  using Load = std::pair<int64_t, int64_t>;  // tokens and shard, for the shards that lack samples
  std::priority_queue<Load, std::vector<Load>, std::greater<>> lacking;
  for (int64_t k = 0; k < std::min(shards, count); ++k) lacking.push({0, k});
  std::vector<std::vector<uint32_t>> of_shard(lacking.size());
  for (uint32_t place : places) {
    const auto [tokens, k] = lacking.top();
    lacking.pop();
    of_shard[size_t(k)].push_back(place);
    if (int64_t(of_shard[size_t(k)].size()) == part(count, shards, k).size()) continue;
    lacking.push({tokens + lengths[size_t(place)], k});
  }
  places.clear();
  for (std::vector<uint32_t>& shard : of_shard) {
    std::sort(shard.begin(), shard.end());
    places.insert(places.end(), shard.begin(), shard.end());
  }
  return places;
}

std::vector<IndexRange> micro_batches(std::span<const int64_t> lengths, int64_t max_tokens) {
  std::vector<IndexRange> runs;
  int64_t tokens = 0;
  for (int64_t i = 0; i < int64_t(lengths.size()); ++i) {
    int64_t length = lengths[size_t(i)];
    if (runs.empty() || length > max_tokens - tokens) {
      runs.push_back({i, i});
      tokens = 0;
    }
    runs.back().end = i + 1;
    tokens += length;
  }
  return runs;
}

std::vector<IndexRange> micro_batches(std::span<const int64_t> lengths, const MicroBatching& cut) {
  return cut.runs > 0 ? equal_runs(lengths, cut.runs) : micro_batches(lengths, cut.tokens);
}

std::vector<IndexRange> equal_runs(std::span<const int64_t> lengths, int64_t runs) {
  FINETUNE_CHECK(runs > 0);
  const int64_t count = int64_t(lengths.size());
  runs = std::min(runs, count);
  std::vector<int64_t> before(size_t(count) + 1, 0);  // tokens before each boundary
  std::partial_sum(lengths.begin(), lengths.end(), before.begin() + 1);
  std::vector<IndexRange> cut;
  for (int64_t k = 1, end = 0; k <= runs; ++k) {
    // Distance to the ideal boundary, tokens * k / runs, multiplied by runs.
    auto distance = [&](int64_t at) {
      return std::abs(before[size_t(at)] * runs - before.back() * k);
    };
    const int64_t begin = end, last = count - (runs - k);
    end = begin + 1;
    while (end < last && distance(end + 1) < distance(end)) ++end;
    cut.push_back({begin, end});
  }
  return cut;
}

RunBounds largest_run(const SequenceBounds& of, const MicroBatching& cut) {
  const int64_t shortest = std::max<int64_t>(1, of.shortest);
  if (cut.runs == 0) {
    const int64_t sequences = std::min(of.count, std::max<int64_t>(1, cut.tokens / shortest));
    return {std::max(of.longest, std::min(cut.tokens, sequences * of.longest)), sequences};
  }
  const int64_t runs = std::min(cut.runs, of.count), most = of.count - runs + 1;
  const int64_t tokens =
      std::min(most * of.longest, of.count * of.longest / runs + (runs > 1 ? of.longest : 0));
  return {tokens, std::min(most, std::max<int64_t>(1, tokens / shortest))};
}

}  // namespace finetune
