// Compares an answer with its context word by word.
#include "data/questions/answer_place.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "core/text/utf8.h"

namespace finetune {
namespace {

// The search stops after this many compared bytes: a context may repeat a long word.
constexpr size_t kMostComparedBytes = size_t{64} << 20;

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

// Returns the end of the white space that begins at byte `at`.
size_t end_of_space(std::string_view text, size_t at) {
  while (at < text.size()) {
    const utf8::Decoded d = utf8::decode(text, at);
    if (!is_space(d.c)) break;
    at += d.length;
  }
  return at;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t at = end_of_space(text, 0); at < text.size(); at = end_of_space(text, at)) {
    const size_t begin = at;
    while (at < text.size()) {
      const utf8::Decoded d = utf8::decode(text, at);
      if (is_space(d.c)) break;
      at += d.length;
    }
    words.push_back(text.substr(begin, at - begin));
  }
  return words;
}

// If `words` begin at byte `at` of the context, returns their end, else npos.
size_t end_of_words(std::string_view context, size_t at,
                    const std::vector<std::string_view>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t begin = i == 0 ? at : end_of_space(context, at);
    if (i > 0 && begin == at) return std::string_view::npos;
    if (!context.substr(begin).starts_with(words[i])) return std::string_view::npos;
    at = begin + words[i].size();
  }
  return at;
}

size_t find(std::string_view text, size_t from, std::string_view word) {
  const void* found = ::memmem(text.data() + from, text.size() - from, word.data(), word.size());
  if (!found) return std::string_view::npos;
  return size_t(static_cast<const char*>(found) - text.data());
}

// Returns the byte offset of code point `index`, or npos past the end.
size_t byte_of_code_point(std::string_view text, int64_t index) {
  size_t i = 0;
  for (; text.size() - i >= 8; i += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    int continuations = std::popcount(word >> 7 & ~(word >> 6) & 0x0101010101010101u);
    if (index < 8 - continuations) break;
    index -= 8 - continuations;
  }
  for (; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
    if (index-- == 0) return i;
  }
  return std::string_view::npos;
}

AnswerPlace place(size_t begin, size_t end) {
  return {int64_t(begin), int64_t(end)};
}

}  // namespace

bool is_blank(std::string_view text) {
  return end_of_space(text, 0) == text.size();
}

std::optional<AnswerPlace> place_at(std::string_view context, std::string_view text,
                                    int64_t start) {
  if (start < 0 || is_blank(text)) return std::nullopt;
  const size_t at = byte_of_code_point(context, start);
  if (at == std::string_view::npos) return std::nullopt;
  if (context.substr(at).starts_with(text)) return place(at, at + text.size());
  const size_t begin = end_of_space(context, at);
  const size_t end = end_of_words(context, begin, words_of(text));
  if (end == std::string_view::npos) return std::nullopt;
  return place(begin, end);
}

std::optional<AnswerPlace> only_place(std::string_view context, std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.empty()) return std::nullopt;
  std::optional<AnswerPlace> found;
  size_t compared = 0;
  for (size_t at = find(context, 0, words[0]); at != std::string_view::npos;
       at = find(context, at + 1, words[0])) {
    if ((compared += words[0].size()) > kMostComparedBytes) return std::nullopt;
    const size_t end = end_of_words(context, at, words);
    if (end == std::string_view::npos) continue;
    if (found) return std::nullopt;
    found = place(at, end);
  }
  return found;
}

}  // namespace finetune
