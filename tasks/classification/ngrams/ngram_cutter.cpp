// Decodes UTF-8, lowers the case, and hashes each n-gram by extending the hash of a shorter one.
#include "tasks/classification/ngrams/ngram_cutter.h"

#include <algorithm>

#include "core/text/utf8.h"
#include "tokenizer/unicode/unicode_tables.h"

namespace finetune {
namespace {

constexpr uint64_t kWordSeed = 0x9E3779B97F4A7C15, kPairSeed = 0xD1B54A32D192ED03,
                   kCharacterSeed = 0x8CB92BA72F3D8DD7;

bool is_space(char32_t c) {
  return unicode::has(c, unicode::kSpace);
}

}  // namespace

uint64_t extended_hash(uint64_t hash, uint64_t value) {
  hash ^= value + 0x632BE59BD9B4E019;
  hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9;
  hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EB;
  return hash ^ (hash >> 31);
}

void NgramCutter::cut(std::string_view text, Ngrams& out) {
  out.words.clear();
  out.characters.clear();
  characters_.clear();
  text = text.substr(0, kMostNgramBytes);
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const utf8::Decoded decoded = utf8::decode(at, end);
    characters_.push_back(unicode::lower(decoded.c));
    at += decoded.length;
  }
  cut_words(out);
  cut_characters(out);
}

void NgramCutter::cut_words(Ngrams& out) {
  hashes_.clear();
  const size_t size = characters_.size();
  for (size_t begin = 0; begin < size;) {
    uint64_t hash = kWordSeed;
    size_t end = begin;
    for (; end < size && unicode::has(characters_[end], unicode::kWord); ++end) {
      hash = extended_hash(hash, characters_[end]);
    }
    if (end - begin >= 2) hashes_.push_back(hash);
    begin = end + 1;
  }
  out.words = hashes_;
  for (size_t i = 1; i < hashes_.size(); ++i) {
    out.words.push_back(extended_hash(extended_hash(kPairSeed, hashes_[i - 1]), hashes_[i]));
  }
}

void NgramCutter::cut_characters(Ngrams& out) {
  const size_t size = characters_.size();
  for (size_t begin = 0; begin < size;) {
    if (is_space(characters_[begin])) {
      ++begin;
      continue;
    }
    size_t end = begin;
    while (end < size && !is_space(characters_[end])) ++end;
    // The word with a blank on each side: its characters are at [begin - 1, end + 1).
    const auto character = [&](size_t at) {
      return at == begin || at == end + 1 ? U' ' : characters_[at - 1];
    };
    for (size_t first = begin; first <= end; ++first) {
      uint64_t hash = extended_hash(kCharacterSeed, character(first));
      const size_t last = std::min(first + kLongestCharacterNgram, end + 2);
      for (size_t at = first + 1; at < last; ++at) {
        hash = extended_hash(hash, character(at));
        out.characters.push_back(hash);
      }
    }
    begin = end;
  }
}

}  // namespace finetune
