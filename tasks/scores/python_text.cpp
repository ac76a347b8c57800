// Implements Python's str.lower, lstrip and character classes with Unicode tables.
#include "tasks/scores/python_text.h"

#include <algorithm>
#include <iterator>

#include "core/text/text.h"
#include "core/text/utf8.h"

namespace finetune {
namespace {

struct CodePointPair {
  char32_t first;
  char32_t second;
};

#include "tasks/scores/case_tables.inc"

template <size_t N>
bool in_ranges(const CodePointPair (&ranges)[N], char32_t c) {
  auto after =
      std::upper_bound(std::begin(ranges), std::end(ranges), c,
                       [](char32_t value, const CodePointPair& r) { return value < r.first; });
  return after != std::begin(ranges) && c <= std::prev(after)->second;
}

char32_t simple_lower(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  auto found =
      std::lower_bound(std::begin(kLower), std::end(kLower), c,
                       [](const CodePointPair& p, char32_t value) { return p.first < value; });
  return found != std::end(kLower) && found->first == c ? found->second : c;
}

// Unicode's Final_Sigma: after a cased letter, not before one; skips case-ignorable characters.
bool is_final_sigma(std::u32string_view text, size_t i) {
  size_t before = i;
  while (before > 0 && in_ranges(kCaseIgnorable, text[before - 1])) --before;
  if (before == 0 || !in_ranges(kCased, text[before - 1])) return false;
  size_t after = i + 1;
  while (after < text.size() && in_ranges(kCaseIgnorable, text[after])) ++after;
  return after == text.size() || !in_ranges(kCased, text[after]);
}

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  while (!text.empty()) {
    size_t bad = std::min(invalid_utf8(text), text.size());
    for (size_t i = 0; i < bad;) {
      const utf8::Decoded d = utf8::decode(text, i);
      out.push_back(d.c);
      i += d.length;
    }
    text.remove_prefix(bad);
    if (!text.empty()) {
      out.push_back(0xFFFD);
      text.remove_prefix(1);
    }
  }
  return out;
}

bool is_python_space(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_python_word(char32_t c) {
  if (c < 0x80) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  return in_ranges(kWord, c);
}

std::u32string python_lower(std::u32string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == 0x130) {  // capital I with dot: i and a combining dot, in every locale
      out += U"i\u0307";
    } else if (text[i] == 0x3A3) {
      out += is_final_sigma(text, i) ? U'\u03C2' : U'\u03C3';
    } else {
      out += simple_lower(text[i]);
    }
  }
  return out;
}

std::string_view python_lstrip(std::string_view text) {
  while (!text.empty()) {
    const utf8::Decoded d = utf8::decode(text, 0);
    if (!is_python_space(d.c)) break;
    text.remove_prefix(d.length);
  }
  return text;
}

}  // namespace finetune
