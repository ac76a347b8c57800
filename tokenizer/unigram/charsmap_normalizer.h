// Normalizes text by a sentencepiece character map, like "Precompiled" in Hugging Face tokenizers.
// It replaces cluster by cluster; the sentencepiece library uses the longest key at each place.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/sentencepiece/charsmap.h"
#include "tokenizer/unicode/source_composition.h"

namespace finetune::unigram {

// Code points that join the cluster before them, that the next character joins, and that stand
// alone, as hexadecimal ranges.
extern const char* const kJoiningRanges;
extern const char* const kPrependedRanges;
extern const char* const kControlRanges;
// The code points that Hugging Face's StripAccents removes.
extern const char* const kAccentRanges;

// Properties of a code point. Without flags it is a cluster of its own, and nothing replaces it.
enum CharFlag : uint8_t {
  kJoining = 1 << 0,
  kPrepended = 1 << 1,
  kStandsAlone = 1 << 2,
  kReplaced = 1 << 3,    // the map replaces it
  kWhiteSpace = 1 << 4,  // White_Space
  kOther = 1 << 5,       // it is the mark, or begins an added token (set by the tokenizer)
  kPrepared = 1 << 6,    // a step before the map changes it
};

// The flags of all code points.
class CharFlags {
 public:
  // `map` may be null.
  explicit CharFlags(const CharsMap* map = nullptr);
  uint8_t operator[](char32_t c) const { return flags_[c]; }
  void add(char32_t c, CharFlag flag) { flags_[c] = uint8_t(flags_[c] | flag); }

 private:
  std::vector<uint8_t> flags_;
};

// A new character and its change: 0 if it stands for one old character, -n if for n more, 1 if it
// was inserted.
struct Change {
  char32_t c;
  int64_t change;
};

// Appends the normalized bytes [begin, end) of `text` with their source bytes. `changes` is scratch
// memory. Returns whether characters at the beginning were removed: all characters behind them then
// have the sources of earlier characters, as in Hugging Face.
bool normalize_clusters(const CharsMap& map, const CharFlags& flags, std::string_view text,
                        size_t begin, size_t end, std::vector<Change>& changes,
                        unicode::SourcedText& out);

}  // namespace finetune::unigram
