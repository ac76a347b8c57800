// Checks UTF-8 and decodes it, one code point at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace finetune::utf8 {

bool is_valid(std::string_view text);

struct Decoded {
  char32_t c;
  uint32_t length;  // bytes consumed, at least 1
};

// Decodes the code point at the start of [p, end), which must not be empty. Invalid UTF-8 becomes
// U+FFFD, one for each maximal subpart (Unicode 15, section 3.9).
inline Decoded decode(const char* p, const char* end) {
  auto byte = [&](int i) { return uint32_t(uint8_t(p[i])); };
  uint32_t b = byte(0);
  if (b < 0x80) return {char32_t(b), 1};
  if (b < 0xC2 || b > 0xF4) return {0xFFFD, 1};
  auto follows = [&](int i, uint32_t low = 0x80, uint32_t high = 0xBF) {
    return p + i < end && byte(i) >= low && byte(i) <= high;
  };
  if (b < 0xE0) {
    if (!follows(1)) return {0xFFFD, 1};
    return {char32_t((b & 0x1F) << 6 | (byte(1) & 0x3F)), 2};
  }
  if (b < 0xF0) {
    if (!follows(1, b == 0xE0 ? 0xA0 : 0x80, b == 0xED ? 0x9F : 0xBF)) return {0xFFFD, 1};
    if (!follows(2)) return {0xFFFD, 2};
    return {char32_t((b & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F)), 3};
  }
  if (!follows(1, b == 0xF0 ? 0x90 : 0x80, b == 0xF4 ? 0x8F : 0xBF)) return {0xFFFD, 1};
  if (!follows(2)) return {0xFFFD, 2};
  if (!follows(3)) return {0xFFFD, 3};
  return {char32_t((b & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 |
                   (byte(3) & 0x3F)),
          4};
}

inline Decoded decode(std::string_view text, size_t at) {
  return decode(text.data() + at, text.data() + text.size());
}

// Decodes the code point that ends at `at` (> 0).
inline Decoded decode_before(std::string_view text, size_t at) {
  for (size_t length = 4; length > 1; --length) {
    if (length > at) continue;
    Decoded d = decode(text.substr(0, at), at - length);
    if (d.length == length) return d;
  }
  return decode(text.substr(0, at), at - 1);
}

inline void append(char32_t c, std::string& out) {
  if (c < 0x80) {
    out.push_back(char(c));
  } else if (c < 0x800) {
    out.push_back(char(0xC0 | c >> 6));
    out.push_back(char(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out.push_back(char(0xE0 | c >> 12));
    out.push_back(char(0x80 | (c >> 6 & 0x3F)));
    out.push_back(char(0x80 | (c & 0x3F)));
  } else {
    out.push_back(char(0xF0 | c >> 18));
    out.push_back(char(0x80 | (c >> 12 & 0x3F)));
    out.push_back(char(0x80 | (c >> 6 & 0x3F)));
    out.push_back(char(0x80 | (c & 0x3F)));
  }
}

}  // namespace finetune::utf8
