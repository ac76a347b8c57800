// Finds the ends of GPT-2's words, character by character.
#include "tokenizer/bpe/word_splitter.h"

#include "tokenizer/unicode/code_point_ranges.h"

namespace finetune::bpe {

CharClasses::CharClasses() {
  const auto set = [&](const char* ranges, CharClass kind) {
    unicode::for_each_in_ranges(ranges, [&](char32_t c) {
      bits_[c >> 2] = uint8_t(bits_[c >> 2] | unsigned(kind) << (c & 3) * 2);
    });
  };
  set(kLetterRanges, CharClass::letter);
  set(kNumberRanges, CharClass::number);
  set(unicode::kWhiteSpaceRanges, CharClass::space);
}

const CharClasses& CharClasses::get() {
  static const CharClasses classes;
  return classes;
}

const char* WordSplitter::skip(CharClass kind, const char* p, const char* end) const {
  while (p < end) {
    const utf8::Decoded d = utf8::decode(p, end);
    if (classes_[d.c] != kind) break;
    p += d.length;
  }
  return p;
}

// A run of white space before a word ends before its last character, because a space there belongs
// to the word. At the end of the text the whole run is one piece.
const char* WordSplitter::skip_spaces(const char* p, const char* end) const {
  const char* last = p;
  const char* at = p;
  while (at < end) {
    const utf8::Decoded d = utf8::decode(at, end);
    if (classes_[d.c] != CharClass::space) break;
    last = at;
    at += d.length;
  }
  return at == end || last == p ? at : last;
}

// `q` is p, or the character after p if the word at p begins with a space.
const char* WordSplitter::next_slowly(const char* p, const char* q, const char* end) const {
  const CharClass kind = classes_[utf8::decode(q, end).c];
  if (kind == CharClass::space) return skip_spaces(p, end);
  if (*p == '\'' && end - p >= 2) {
    const char a = p[1], b = end - p >= 3 ? p[2] : '\0';
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return p + 2;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return p + 3;
  }
  return skip(kind, q, end);
}

}  // namespace finetune::bpe
