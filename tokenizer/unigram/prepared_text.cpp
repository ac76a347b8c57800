// Applies the steps before the character map, character by character.
#include "tokenizer/unigram/prepared_text.h"

#include <utility>

#include "core/text/utf8.h"
#include "tokenizer/unicode/code_point_ranges.h"
#include "tokenizer/unicode/unicode_tables.h"

namespace finetune::unigram {
namespace {

using Kind = UnigramStep::Kind;
using unicode::SourcedText;

constexpr char32_t kCodePoints = 0x110000;
constexpr char32_t kDottedI = 0x130, kDotAbove = 0x307;

bool is_accent(char32_t c) {
  static const std::vector<bool> accents = [] {
    std::vector<bool> found(kCodePoints);
    unicode::for_each_in_ranges(kAccentRanges, [&](char32_t each) { found[each] = true; });
    return found;
  }();
  return accents[c];
}

bool decomposes(char32_t c) {
  if (c - unicode::kHangulFirst < unicode::kHangulCount) return true;
  const unicode::Mapping& m = unicode::mapping(unicode::entry(c));
  return m.canonical_length != 0 || m.compatible_length != 0;
}

bool composes(char32_t c) {
  std::string own;
  utf8::append(c, own);
  return unicode::may_compose(own);
}

bool changes(Kind kind, char32_t c) {
  switch (kind) {
    case Kind::compose:
      return composes(c);
    case Kind::decompose:
      return decomposes(c) || unicode::combining_class(unicode::entry(c)) != 0;
    case Kind::strip_accents:
      return is_accent(c);
    case Kind::lowercase:
      return c == kDottedI || unicode::lower(c) != c;
    default:
      return false;
  }
}

// Replaces two quotes by '"', with the source of the second one.
void join_quotes(char quote, SourcedText& text, SourcedText& memory) {
  const char pair[] = {quote, quote};
  const std::string_view quotes(pair, 2);
  if (text.text.find(quotes) == std::string::npos) return;
  memory.clear();
  for (size_t at = 0; at < text.text.size();) {
    if (std::string_view(text.text).substr(at).starts_with(quotes)) {
      memory.append('"', text.begins[at + 1], text.ends[at + 1]);
      at += 2;
      continue;
    }
    const utf8::Decoded d = utf8::decode(text.text, at);
    memory.append(d.c, text.begins[at], text.ends[at]);
    at += d.length;
  }
  std::swap(text, memory);
}

// Replaces two and more white-space characters, or one of "\n\r\t", by `content`, with the source
// of the last one.
void join_white_space(const CharFlags& flags, std::string_view content, SourcedText& text,
                      SourcedText& memory) {
  memory.clear();
  for (size_t at = 0; at < text.text.size();) {
    size_t stop = at, last = at;
    int count = 0;
    while (stop < text.text.size()) {
      const utf8::Decoded d = utf8::decode(text.text, stop);
      if (!(flags[d.c] & kWhiteSpace)) break;
      last = stop;
      stop += d.length;
      ++count;
    }
    if (count > 1 || std::string_view("\n\r\t").find(text.text[at]) != std::string_view::npos) {
      memory.text += content;
      memory.begins.resize(memory.text.size(), text.begins[last]);
      memory.ends.resize(memory.text.size(), text.ends[last]);
      at = stop;
      continue;
    }
    const utf8::Decoded d = utf8::decode(text.text, at);
    memory.append(d.c, text.begins[at], text.ends[at]);
    at += d.length;
  }
  std::swap(text, memory);
}

// The sources of `text` are bytes of `from`. Replaces them by the sources of those bytes.
void take_sources(const SourcedText& from, SourcedText& text) {
  for (size_t i = 0; i < text.text.size(); ++i) {
    const uint32_t begin = text.begins[i], end = text.ends[i];
    text.begins[i] = begin < end ? from.begins[begin] : 0;
    text.ends[i] = begin < end ? from.ends[end - 1] : 0;
  }
}

void compose(SourcedText& text, SourcedText& memory) {
  if (!unicode::may_compose(text.text)) return;
  std::swap(text, memory);
  text.clear();
  unicode::compose_with_sources(memory.text, 0, text);
  take_sources(memory, text);
}

}  // namespace

void flag_prepared_chars(const UnigramStep& step, CharFlags& flags) {
  if (step.kind == Kind::join_quotes) return flags.add(char32_t(step.content[0]), kPrepared);
  if (!step.prepares()) return;
  for (char32_t c = 0; c < kCodePoints; ++c) {
    if (changes(step.kind, c)) flags.add(c, kPrepared);
  }
}

void prepare(const UnigramStep& step, const CharFlags& flags, SourcedText& text,
             SourcedText& memory) {
  if (step.kind == Kind::join_quotes) return join_quotes(step.content[0], text, memory);
  if (step.kind == Kind::join_white_space) {
    return join_white_space(flags, step.content, text, memory);
  }
  if (step.kind == Kind::compose) return compose(text, memory);
  memory.clear();
  if (step.kind == Kind::decompose) {
    unicode::decompose_with_sources(text, memory);
    return std::swap(text, memory);
  }
  for (size_t at = 0; at < text.text.size();) {
    const utf8::Decoded d = utf8::decode(text.text, at);
    const uint32_t begin = text.begins[at], end = text.ends[at];
    at += d.length;
    if (!changes(step.kind, d.c)) {
      memory.append(d.c, begin, end);
    } else if (step.kind == Kind::lowercase) {
      memory.append(d.c == kDottedI ? U'i' : unicode::lower(d.c), begin, end);
      if (d.c == kDottedI) memory.append(kDotAbove, begin, end);
    }
  }
  std::swap(text, memory);
}

bool normalize_prepared(const CharsMap& map, const CharFlags& flags, std::vector<Change>& changes,
                        SourcedText& text, SourcedText& memory) {
  std::swap(text, memory);
  text.clear();
  const bool shifted =
      normalize_clusters(map, flags, memory.text, 0, memory.text.size(), changes, text);
  take_sources(memory, text);
  return shifted;
}

}  // namespace finetune::unigram
