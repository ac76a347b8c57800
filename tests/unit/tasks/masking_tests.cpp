// Which words are masked: as in tests/peers/hidden_words.py, whole words, in the promised shares.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "data/packing.h"
#include "tasks/masked_language/masking.h"
#include "tasks/objective.h"

namespace finetune {
namespace {

constexpr int32_t kMask = 4, kFirstWord = 5, kFirstContinuation = 50;
constexpr int64_t kIds = 100;

std::vector<uint8_t> kinds_of_ids() {
  std::vector<uint8_t> kinds(kIds, uint8_t(WordKind::continues));
  std::fill_n(kinds.begin(), kFirstContinuation, uint8_t(WordKind::begins));
  std::fill_n(kinds.begin(), kFirstWord, uint8_t(WordKind::special));
  return kinds;
}

struct Masker {
  std::vector<uint8_t> kinds = kinds_of_ids();
  Masking masking;

  explicit Masker(bool whole_words = true, double probability = 0.15)
      : masking({42, probability, kIds, kMask, whole_words}, kinds) {}
  std::vector<HiddenPiece> operator()(const std::vector<int32_t>& ids, uint32_t sample = 0,
                                      uint32_t epoch = 0) const {
    std::vector<HiddenPiece> hidden(3);  // earlier contents are overwritten
    masking.hide(ids, sample, epoch, hidden);
    return hidden;
  }
};

using Pairs = std::vector<std::pair<int32_t, int32_t>>;
Pairs pairs(const std::vector<HiddenPiece>& hidden) {
  Pairs out;
  for (const HiddenPiece& piece : hidden) out.emplace_back(piece.place, piece.replacement);
  return out;
}

// Two words of two pieces, one of three, special tokens at the ends and inside.
const std::vector<int32_t> kText = {1,  10, 60, 11, 12, 70, 71, 13, 3,  80,
                                    14, 15, 16, 90, 17, 18, 19, 20, 21, 2};

}  // namespace

TEST_CASE("masked words follow the formula") {
  const Masker whole, pieces(false);
  CHECK(pairs(whole(kText)) == Pairs{{7, 4}, {11, 15}, {16, 4}});
  CHECK(pairs(whole(kText, 7)) == Pairs{{1, 4}, {2, 4}, {14, 4}});
  CHECK(pairs(whole(kText, 7, 3)) == Pairs{{11, 4}, {16, 7}, {17, 4}});
  CHECK(pairs(whole(kText, 7, Masking::kEvaluation)) == Pairs{{9, 4}, {10, 4}, {15, 4}});
  CHECK(pairs(pieces(kText)) == Pairs{{2, 4}, {6, 4}, {7, 4}});
  CHECK(pairs(pieces(kText, 7)) == Pairs{{4, 68}, {11, 4}, {16, 4}});
  CHECK(pairs(pieces(kText, 7, 3)) == Pairs{{4, 4}, {10, 4}});
  CHECK(pairs(pieces(kText, 7, Masking::kEvaluation)) == Pairs{});
}

TEST_CASE("a word beyond the budget is masked if no other fits") {
  const Masker whole;
  CHECK(whole({1, 10, 60, 61, 62, 2}).size() == 4);
  CHECK(whole({1, 2}).empty());        // an empty text
  CHECK(whole({1, 3, 3, 2}).empty());  // only unknown words
  CHECK(whole({1, 10, 2}).size() == 1);
  CHECK(Masker(true, 1)(kText).size() == 17);  // all but the special tokens
  for (uint32_t sample = 0; sample < 50; ++sample) {
    CHECK(whole({1, 10, 60, 61, 62, 11, 2}, sample).size() == 1);  // the one that fits
  }
}

TEST_CASE("whole words are hidden, as many as the budget has, no special token, in the shares") {
  for (bool whole_words : {true, false}) {
    const Masker masker(whole_words);
    std::map<int32_t, int64_t> places;
    int64_t hidden = 0, masked = 0, kept = 0, in_range = 0;
    constexpr int kSamples = 40000;
    for (uint32_t sample = 0; sample < kSamples; ++sample) {
      const std::vector<HiddenPiece> of_sample = masker(kText, sample, sample % 5);
      std::set<int32_t> chosen;
      for (const HiddenPiece& piece : of_sample) {
        CHECK(chosen.insert(piece.place).second);
        const int32_t own = kText[size_t(piece.place)];
        CHECK(own >= kFirstWord);
        masked += piece.replacement == kMask;
        kept += piece.replacement == own;
        in_range += piece.replacement >= 0 && piece.replacement < kIds;
        ++places[piece.place];
      }
      hidden += int64_t(of_sample.size());
      if (!whole_words) continue;
      CHECK(of_sample.size() == 3);  // 0.15 * 20
      CHECK(chosen.contains(1) == chosen.contains(2));
      for (int32_t part : {5, 6}) CHECK(chosen.contains(4) == chosen.contains(part));
      CHECK(chosen.contains(12) == chosen.contains(13));
    }
    CHECK(in_range == hidden);
    // A random id is [MASK] or its own with 1 in 100 each.
    const double count = double(hidden);
    CHECK(std::abs(double(masked) / count - (0.8 + 0.1 / kIds)) < 0.004);
    CHECK(std::abs(double(kept) / count - (0.1 + 0.1 / kIds)) < 0.003);
    if (whole_words) continue;
    for (const auto& [place, times] : places) {
      CHECK(std::abs(double(times) / kSamples - 0.15) < 0.006);
    }
    CHECK(places.size() == 17);
  }
}

TEST_CASE("a micro-batch masks its samples' words, wherever they are packed") {
  TokenizedSamples samples;
  for (int32_t i = 0; i < 6; ++i) {
    std::vector<int32_t> ids = {1};
    for (int32_t t = 0; t < 3 + 2 * i; ++t) ids.push_back((7 * i + 11 * t) % 95 + 5);
    ids.push_back(2);
    samples.ids.insert(samples.ids.end(), ids.begin(), ids.end());
    samples.offsets.push_back(int64_t(samples.ids.size()));
    samples.second.push_back(uint32_t(ids.size()));
  }
  const std::vector<uint8_t> kinds = kinds_of_ids();
  TrainingArrays arrays;
  arrays.kind = TaskKind::mlm;
  arrays.head = {HeadKind::masked, kIds};
  arrays.samples = samples;
  arrays.word_kinds = kinds;
  arrays.masking = {42, 0.3, kIds, kMask, true};
  const std::unique_ptr<Objective> objective = make_objective(arrays);
  objective->begin_epoch(2);
  const std::vector<uint32_t> all = {0, 1, 2, 3, 4, 5}, some = {4, 1};
  PackedBatch batch, part;
  pack(samples, all, {}, batch);
  objective->complete(batch);
  pack(samples, some, {}, part);
  objective->complete(part);
  CHECK(objective->loss_denominator(all) == double(batch.scored.size()));
  CHECK(objective->loss_denominator(some) == double(part.scored.size()));
  CHECK(part.scored.size() > 1);
  // Sample 4 is first in the part, sample 1 follows it.
  auto of_sample = [](const PackedBatch& from, size_t b) {
    Pairs out;
    for (size_t i = 0; i < from.scored.size(); ++i) {
      const int32_t place = from.scored[i] - from.offsets[b];
      if (place < 0 || from.scored[i] >= from.offsets[b + 1]) continue;
      out.emplace_back(place, from.targets[i]);
    }
    return out;
  };
  CHECK(of_sample(part, 0) == of_sample(batch, 4));
  CHECK(of_sample(part, 1) == of_sample(batch, 1));
  for (size_t i = 0; i < batch.scored.size(); ++i) {
    CHECK(batch.targets[i] == samples.ids[size_t(batch.scored[i])]);
  }
  CHECK(std::is_sorted(batch.order.begin(), batch.order.end(), [&](int32_t a, int32_t b) {
    return batch.ids[size_t(a)] < batch.ids[size_t(b)];
  }));
  // Processes have the arrays in a shared block.
  const std::unique_ptr<void, decltype(&std::free)> block(
      std::aligned_alloc(64, (block_bytes(arrays) + 63) / 64 * 64), std::free);
  copy_arrays(arrays, block.get());
  const std::unique_ptr<Objective> of_block = make_objective(arrays_in(block.get()));
  of_block->begin_epoch(2);
  PackedBatch same;
  pack(of_block->samples(), all, {}, same);
  of_block->complete(same);
  CHECK(same.ids == batch.ids);
  CHECK(same.scored == batch.scored);
  objective->begin_epoch(3);
  PackedBatch later;
  pack(samples, all, {}, later);
  objective->complete(later);
  CHECK(later.scored != batch.scored);
}

}  // namespace finetune
