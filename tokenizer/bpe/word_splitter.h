// Splits text into GPT-2's words, which byte-level BPE encodes one by one.
//
// The splitter matches the expression of Hugging Face's ByteLevel pre-tokenizer without a regex:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "core/text/utf8.h"

namespace finetune::bpe {

enum class CharClass : uint8_t { other, letter, number, space };

// Classes of all code points: two bits each.
class CharClasses {
 public:
  static const CharClasses& get();
  CharClass operator[](char32_t c) const { return CharClass(bits_[c >> 2] >> (c & 3) * 2 & 3); }

 private:
  CharClasses();
  uint8_t bits_[0x110000 / 4] = {};
};

// The code points of \p{L} and \p{N} as hexadecimal ranges, as tokenizers' expressions know them.
extern const char* const kLetterRanges;
extern const char* const kNumberRanges;

class WordSplitter {
 public:
  // Returns the end of the word that begins at p. Requires p < end.
  const char* next(const char* p, const char* end) const {
    const char* q = *p == ' ' && p + 1 < end ? p + 1 : p;
    const uint8_t first = uint8_t(*q);
    if (uint8_t((first | 0x20) - 'a') < 26) return skip_letters(q, end);
    return next_slowly(p, q, end);
  }

 private:
  const char* next_slowly(const char* p, const char* q, const char* end) const;
  const char* skip_spaces(const char* p, const char* end) const;
  const char* skip(CharClass kind, const char* p, const char* end) const;

  const char* skip_letters(const char* p, const char* end) const {
    static_assert(std::endian::native == std::endian::little);
    constexpr uint64_t kOnes = 0x0101010101010101u, kHigh = 0x80 * kOnes;
    while (end - p >= 8) {
      uint64_t bytes;
      std::memcpy(&bytes, p, 8);
      const uint64_t lower = (bytes | 0x20 * kOnes) & ~kHigh;
      const uint64_t from_a = lower + (0x80 - 'a') * kOnes;          // high bit: >= 'a'
      const uint64_t past_z = lower + (0x80 - 'z' - 1) * kOnes;      // high bit: > 'z'
      const uint64_t others = ~(from_a & ~past_z & ~bytes) & kHigh;  // high bit: not a letter
      if (others != 0) {
        p += std::countr_zero(others) >> 3;
        return uint8_t(*p) < 0x80 ? p : skip(CharClass::letter, p, end);
      }
      p += 8;
    }
    return skip(CharClass::letter, p, end);
  }

  const CharClasses& classes_ = CharClasses::get();
};

}  // namespace finetune::bpe
