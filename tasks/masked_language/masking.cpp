// Shuffles a sample's words, hides as many as the budget allows, and draws replacements.
#include "tasks/masked_language/masking.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/per_thread.h"

namespace finetune {
namespace {

constexpr double kMasked = 0.8, kMaskedOrRandom = 0.9;
constexpr uint32_t kOfWords = 0, kOfPieces = 1;  // last word of the counter

struct Word {
  uint32_t draw = 0;
  int32_t begin = 0, end = 0;
};

struct Words {  // nothing is allocated inside a step
  std::vector<Word> words;
};

}  // namespace

Masking::Masking(const MaskingOptions& options, std::span<const uint8_t> kinds)
    : options_(options),
      kinds_(kinds),
      key_(derive_key(options.seed, uint32_t(RandomUse::masking))) {
  FINETUNE_CHECK(options.mask_id >= 0 && options.words == int64_t(kinds.size()));
}

void Masking::choose_words(std::span<const int32_t> ids, uint32_t sample, uint32_t epoch,
                           std::vector<HiddenPiece>& out) const {
  std::vector<Word>& words = per_thread<Words>().words;
  words.clear();
  bool is_open = false;  // the last word may continue
  for (int32_t i = 0; i < int32_t(ids.size()); ++i) {
    const WordKind is = kind(ids[size_t(i)]);
    if (is == WordKind::continues && is_open) {
      words.back().end = i + 1;
      continue;
    }
    is_open = is != WordKind::special;
    if (is_open) words.push_back({0, i, i + 1});
  }
  for (uint32_t w = 0; w < words.size(); ++w) {
    words[w].draw = philox(key_, {w, sample, epoch, kOfWords})[0];
  }
  std::stable_sort(words.begin(), words.end(),
                   [](const Word& a, const Word& b) { return a.draw < b.draw; });
  // Rounds like Python: halves to even.
  const double share = options_.probability * double(ids.size());
  const auto budget = std::max<int64_t>(1, int64_t(std::nearbyint(share)));
  auto take = [&](const Word& word) {
    for (int32_t i = word.begin; i < word.end; ++i) out.push_back({i, 0});
  };
  for (const Word& word : words) {
    if (int64_t(out.size()) + word.end - word.begin <= budget) take(word);
  }
  if (out.empty() && !words.empty()) take(words.front());
  std::sort(out.begin(), out.end(),
            [](const HiddenPiece& a, const HiddenPiece& b) { return a.place < b.place; });
}

void Masking::hide(std::span<const int32_t> ids, uint32_t sample, uint32_t epoch,
                   std::vector<HiddenPiece>& out) const {
  out.clear();
  auto bits_of = [&](int32_t place) {
    return philox(key_, {uint32_t(place), sample, epoch, kOfPieces});
  };
  if (options_.whole_words) {
    choose_words(ids, sample, epoch, out);
  } else {
    for (int32_t i = 0; i < int32_t(ids.size()); ++i) {
      if (kind(ids[size_t(i)]) == WordKind::special) continue;
      if (unit_interval(bits_of(i)[0]) < options_.probability) out.push_back({i, 0});
    }
  }
  for (HiddenPiece& piece : out) {
    const PhiloxBlock bits = bits_of(piece.place);
    const double draw = unit_interval(bits[1]);
    if (draw < kMasked) {
      piece.replacement = options_.mask_id;
    } else if (draw < kMaskedOrRandom) {
      piece.replacement = int32_t((uint64_t(bits[2]) * uint64_t(options_.words)) >> 32);
    } else {
      piece.replacement = ids[size_t(piece.place)];
    }
  }
}

}  // namespace finetune
