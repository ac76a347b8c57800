// The tokenizers' Unicode data. Flags and the canonical decomposition match Hugging Face tokenizers
// 0.22.2 exactly. scripts/generate/generate_unicode_tables.py makes unicode_tables.bin and names
// the Unicode versions; the build expands it to C++ (scripts/generate/unicode_table_file.py).
#pragma once

#include <cstdint>

namespace finetune::unicode {

enum Flag : uint32_t {
  kSpace = 1u << 0,        // White_Space
  kControl = 1u << 1,      // dropped by clean_text: Cc, Cf, Co, U+0000, U+FFFD; not \t \n \r
  kPunctuation = 1u << 2,  // ASCII punctuation and P*
  kMark = 1u << 3,         // Mn
  kCjk = 1u << 4,          // ideographs that become words of their own
  kWord = 1u << 5,         // \w of a regular expression
  kLate = 1u << 6,         // combining class added after Unicode 9.0
  kDigit = 1u << 7,        // Python's str.isdigit()
};

// Full decompositions, stored in kPool. A character without a compatibility decomposition has its
// canonical one there. Hangul syllables are not in the table.
struct Mapping {
  char32_t lower;
  uint16_t canonical;
  uint16_t compatible;
  uint8_t canonical_length;
  uint8_t compatible_length;
};

extern const uint16_t kPageOf[0x110000 / 128];
extern const uint32_t kEntries[];  // flags | combining class << 8 | mapping << 16
extern const Mapping kMappings[];  // [0]: no mapping
extern const char32_t kPool[];

// Returns the entry of a code point; any number below 0x110000 is valid.
inline uint32_t entry(char32_t c) {
  return kEntries[kPageOf[c >> 7] * 128u + (c & 127u)];
}
inline bool has(char32_t c, uint32_t flags) {
  return (entry(c) & flags) != 0;
}
inline uint8_t combining_class(uint32_t entry) {
  return uint8_t(entry >> 8);
}
inline const Mapping& mapping(uint32_t entry) {
  return kMappings[entry >> 16];
}

// Returns the lower case of one character without context. For U+0130 the caller must write "i" and
// U+0307.
inline char32_t lower(char32_t c) {
  uint32_t e = entry(c);
  return e >> 16 ? mapping(e).lower : c;
}

constexpr char32_t kHangulFirst = 0xAC00;
constexpr char32_t kHangulCount = 11172;

// Calls emit(part) for every part of the full canonical or compatibility decomposition.
template <typename Emit>
void decompose(char32_t c, bool compatible, Emit&& emit) {
  if (c - kHangulFirst < kHangulCount) {
    char32_t s = c - kHangulFirst;
    emit(char32_t(0x1100 + s / 588));
    emit(char32_t(0x1161 + s % 588 / 28));
    if (s % 28 != 0) emit(char32_t(0x11A7 + s % 28));
    return;
  }
  const Mapping& m = mapping(entry(c));
  bool use_compatible = compatible && m.compatible_length != 0;
  const char32_t* parts = kPool + (use_compatible ? m.compatible : m.canonical);
  uint8_t length = use_compatible ? m.compatible_length : m.canonical_length;
  if (length == 0) emit(c);
  for (uint8_t i = 0; i < length; ++i) emit(parts[i]);
}

}  // namespace finetune::unicode
