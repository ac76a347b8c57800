// Encodes text by byte-level BPE: known words by a table, others by merges, with offsets.
#include "tokenizer/bpe/bpe_tokenizer.h"

#include <algorithm>
#include <cstddef>

#include "core/per_thread.h"
#include "core/text/utf8.h"
#include "tokenizer/bpe/byte_chars.h"
#include "tokenizer/unicode/unicode_tables.h"
#include "tokenizer/valid_text.h"
#include "tokenizer/word_cache.h"

namespace finetune {

using bpe::Symbol;
using unicode::SourcedText;

namespace {

// Keys hold words of up to 15 bytes. The last byte is the length, because words may end with zeros.
constexpr size_t kLongestKey = WordTable::kLongest - 1;

WordKey with_length(WordKey key, size_t length) {
  key.high |= uint64_t(length) << 56;
  return key;
}

constexpr size_t kCachedWords = 1 << 13;

}  // namespace

struct BpeTokenizer::Scratch {
  WordCache cache{kCachedWords};
  std::vector<Symbol> symbols;
  std::string prefixed;
  SourcedText word, composed, with_prefix;
};

// The text that is encoded, and the buffer that receives its tokens.
struct BpeTokenizer::Target {
  std::string_view text;  // valid UTF-8; offsets are its bytes
  Scratch& scratch;
  TokenBuffer& out;
  size_t first;  // out's size before the text

  void push(int32_t id, uint32_t begin, uint32_t end) {
    out.ids.push_back(id);
    out.begins.push_back(begin);
    out.ends.push_back(end);
  }
};

BpeTokenizer::BpeTokenizer(BpeDefinition definition)
    : definition_(std::move(definition)), instance_(next_tokenizer_instance()) {
  special_ = definition_.special;
  stated_ = definition_.stated;
  build_words();
  build_added_tokens();
}

void BpeTokenizer::build_words() {
  const auto outside = outside_model(definition_.added);
  for (size_t b = 0; b < 256; ++b) {
    std::string name;
    utf8::append(bpe::kByteChars[b], name);
    byte_ids_[b] = outside.contains(name) ? -1 : definition_.vocabulary.find(name);
  }
  std::vector<std::pair<WordKey, int32_t>> found;
  std::vector<Symbol> symbols;
  for (const auto& [piece, id] : definition_.vocabulary.sorted()) {
    const std::optional<std::string> bytes = bpe::bytes_of(piece);
    if (!bytes || bytes->empty() || outside.contains(piece)) continue;
    if (definition_.ignore_merges) {
      whole_.emplace(*bytes, id);
    } else {
      if (bytes->size() > kLongestKey) continue;
      merge_word(*bytes, symbols);
      if (symbols.size() != 1 || symbols[0].id != id) continue;
    }
    const WordKey key = WordTable::key(bytes->substr(0, kLongestKey));
    // encode_plain() trims the offsets of words in this table only at their beginning.
    const bool trimmed_at_start_alone = bytes->find(' ', 1) == bytes->npos;
    if (bytes->size() <= kLongestKey && key.low != 0 && trimmed_at_start_alone) {
      found.push_back({with_length(key, bytes->size()), id});
    }
  }
  words_ = WordTable(found.size());
  for (const auto& [key, id] : found) words_.insert(key, id);
}

void BpeTokenizer::build_added_tokens() {
  std::vector<AddedToken> raw, normalized;
  std::vector<std::string> raw_patterns, normalized_patterns;
  is_added_.resize(size_t(vocabulary_size()));
  for (const AddedToken& token : definition_.added) {
    is_added_[size_t(token.id)] = true;
    std::string pattern = token.content;
    if (token.normalized && definition_.compose) {
      SourcedText composed;
      unicode::compose_with_sources(token.content, 0, composed);
      pattern = composed.text;
    }
    (token.normalized ? normalized : raw).push_back(token);
    (token.normalized ? normalized_patterns : raw_patterns).push_back(std::move(pattern));
  }
  raw_tokens_ = AddedTokenMatcher(std::move(raw), std::move(raw_patterns));
  normalized_tokens_ = AddedTokenMatcher(std::move(normalized), std::move(normalized_patterns));
}

bool BpeTokenizer::continues_word(int32_t id) const {
  if (id < 0 || id >= vocabulary_size() || is_added_[size_t(id)]) return false;
  static const std::string space = [] {
    std::string out;
    utf8::append(bpe::kByteChars[' '], out);
    return out;
  }();
  return !token(id).starts_with(space);
}

void BpeTokenizer::encode(std::string_view text, TokenBuffer& out) const {
  encode_as_utf8(text, out,
                 [&](std::string_view valid, TokenBuffer& to) { encode_valid(valid, to); });
}

void BpeTokenizer::encode_valid(std::string_view text, TokenBuffer& out) const {
  Target target{text, per_thread<Scratch>(), out, out.size()};
  raw_tokens_.split(
      text, [&](size_t begin, size_t end) { encode_segment(begin, end, target); },
      [&](const AddedTokenMatcher::Match& match) {
        push_added(text.substr(match.begin, match.end - match.begin), match.id,
                   uint32_t(match.begin), uint32_t(match.end), target);
      });
}

void BpeTokenizer::encode_segment(size_t begin, size_t end, Target& target) const {
  const std::string_view segment = target.text.substr(begin, end - begin);
  if (!definition_.compose || !unicode::may_compose(segment)) {
    return normalized_tokens_.split(
        segment, [&](size_t from, size_t to) { encode_plain(begin + from, begin + to, target); },
        [&](const AddedTokenMatcher::Match& match) {
          push_added(segment.substr(match.begin, match.end - match.begin), match.id,
                     uint32_t(begin + match.begin), uint32_t(begin + match.end), target);
        });
  }
  SourcedText& composed = target.scratch.composed;
  composed.clear();
  unicode::compose_with_sources(segment, uint32_t(begin), composed);
  normalized_tokens_.split(
      composed.text, [&](size_t from, size_t to) { encode_sourced(composed, from, to, target); },
      [&](const AddedTokenMatcher::Match& match) {
        push_added(std::string_view(composed.text).substr(match.begin, match.end - match.begin),
                   match.id, composed.begins[match.begin], composed.ends[match.end - 1], target);
      });
}

void BpeTokenizer::encode_plain(size_t begin, size_t end, Target& target) const {
  const char* const text = target.text.data();
  const char* const limit = text + target.text.size();
  const char* const stop = text + end;
  const char* p = text + begin;
  if (definition_.add_prefix_space || definition_.trim_keeps_prefix) {
    // The first word may get the added space, or have a space that trimming keeps.
    Scratch& scratch = target.scratch;
    scratch.prefixed.assign(definition_.add_prefix_space && *p != ' ', ' ');
    const size_t added = scratch.prefixed.size();
    scratch.prefixed.append(p, stop);
    const char* const first = scratch.prefixed.data();
    const size_t length = size_t(splitter_.next(first, first + scratch.prefixed.size()) - first);
    scratch.word.clear();
    const uint32_t first_end = uint32_t(begin + utf8::decode(p, stop).length);
    if (added) scratch.word.append(' ', uint32_t(begin), first_end);
    const char* const behind = p + length - added;
    while (p < behind) {
      const utf8::Decoded d = utf8::decode(p, stop);
      scratch.word.append(d.c, uint32_t(p - text), uint32_t(p - text) + d.length);
      p += d.length;
    }
    encode_word(scratch.word.text, scratch, [&](int32_t id, size_t from, size_t to) {
      push_token(std::string_view(scratch.word.text).substr(from, to - from), id,
                 scratch.word.begins[from], scratch.word.ends[to - 1], target);
    });
  }
  const bool trim = definition_.trim_offsets;
  while (p < stop) {
    const char* const behind = splitter_.next(p, stop);
    const size_t length = size_t(behind - p);
    const uint32_t at = uint32_t(p - text);
    if (length <= kLongestKey) {
      const WordKey key = limit - p >= std::ptrdiff_t(sizeof(WordKey))
                              ? WordTable::key_within(p, length)
                              : WordTable::key({p, length});
      const int32_t id = words_.find(with_length(key, length));
      if (id >= 0) {
        target.push(id, at + uint32_t(trim & (*p == ' ')), at + uint32_t(length));
        p = behind;
        continue;
      }
    }
    const auto within = [](char c) { return (uint8_t(c) & 0xC0) == 0x80; };  // a character
    encode_word({p, length}, target.scratch, [&](int32_t id, size_t from, size_t to) {
      const std::string_view part(p + from, to - from);
      while (within(p[from])) --from;
      while (to < length && within(p[to])) ++to;
      push_token(part, id, at + uint32_t(from), at + uint32_t(to), target);
    });
    p = behind;
  }
}

void BpeTokenizer::encode_sourced(const SourcedText& from, size_t begin, size_t end,
                                  Target& target) const {
  if (definition_.add_prefix_space && from.text[begin] != ' ') {
    SourcedText& prefixed = target.scratch.with_prefix;
    prefixed.clear();
    prefixed.append(' ', from.begins[begin], from.ends[begin]);
    prefixed.text.append(from.text, begin, end - begin);
    for (auto array : {&SourcedText::begins, &SourcedText::ends}) {
      (prefixed.*array)
          .insert((prefixed.*array).end(), (from.*array).begin() + std::ptrdiff_t(begin),
                  (from.*array).begin() + std::ptrdiff_t(end));
    }
    return encode_sourced(prefixed, 0, prefixed.text.size(), target);
  }
  const char* const text = from.text.data();
  while (begin < end) {
    const size_t stop = size_t(splitter_.next(text + begin, text + end) - text);
    encode_word({text + begin, stop - begin}, target.scratch,
                [&](int32_t id, size_t first, size_t behind) {
                  push_token({text + begin + first, behind - first}, id, from.begins[begin + first],
                             from.ends[begin + behind - 1], target);
                });
    begin = stop;
  }
}

template <typename Push>
void BpeTokenizer::encode_word(std::string_view word, Scratch& scratch, Push&& push) const {
  scratch.cache.encode(
      word, instance_,
      [&]() -> const std::vector<Symbol>& {
        merge_word(word, scratch.symbols);
        return scratch.symbols;
      },
      push);
}

void BpeTokenizer::merge_word(std::string_view word, std::vector<Symbol>& symbols) const {
  symbols.clear();
  if (definition_.ignore_merges) {
    const auto whole = whole_.find(std::string(word));
    if (whole != whole_.end()) return symbols.push_back({whole->second, uint32_t(word.size())});
  }
  bool unknown_before = false;
  for (size_t i = 0; i < word.size(); ++i) {
    const int32_t id = byte_ids_[uint8_t(word[i])];
    const bool unknown = id < 0;
    const uint32_t end = uint32_t(i + 1);
    if (unknown && definition_.unknown < 0) continue;
    if (unknown && unknown_before && definition_.fuse_unknown) {
      symbols.back().end = end;
    } else {
      symbols.push_back({unknown ? definition_.unknown : id, end});
    }
    unknown_before = unknown;
  }
  merge_symbols(definition_.merges, symbols);
}

// `word` holds the token's bytes.
void BpeTokenizer::push_token(std::string_view word, int32_t id, uint32_t begin, uint32_t end,
                              Target& target) const {
  if (!definition_.trim_offsets || (word.front() != ' ' && word.back() != ' ')) {
    return target.push(id, begin, end);
  }
  const size_t leading = std::min(word.find_first_not_of(' '), word.size());
  const size_t trailing = word.size() - (word.find_last_not_of(' ') + 1);
  push_trimmed(id, begin, end, leading, trailing, target);
}

// `content` is the token as written in the text, with the white space that belongs to it.
void BpeTokenizer::push_added(std::string_view content, int32_t id, uint32_t begin, uint32_t end,
                              Target& target) const {
  if (!definition_.trim_offsets) return target.push(id, begin, end);
  const auto is_space = [](char32_t c) {
    return unicode::has(c, unicode::kSpace) || c == bpe::kByteChars[' '];
  };
  size_t leading = 0, trailing = 0;
  for (size_t at = 0; at < content.size(); ++leading) {
    const utf8::Decoded d = utf8::decode(content, at);
    if (!is_space(d.c)) break;
    at += d.length;
  }
  for (size_t at = content.size(); at > 0; ++trailing) {
    const utf8::Decoded d = utf8::decode_before(content, at);
    if (!is_space(d.c)) break;
    at -= d.length;
  }
  push_trimmed(id, begin, end, leading, trailing, target);
}

// Omits `leading` and `trailing` characters from the offsets, like Hugging Face's process_offsets.
void BpeTokenizer::push_trimmed(int32_t id, uint32_t begin, uint32_t end, size_t leading,
                                size_t trailing, Target& target) const {
  const bool is_first = target.out.size() == target.first || begin == 0;
  // A single space may be the added one, and stays.
  if (is_first && definition_.trim_keeps_prefix && leading == 1) leading = 0;
  for (; leading > 0 && begin < end; --leading) begin += utf8::decode(target.text, begin).length;
  for (; trailing > 0 && begin < end; --trailing) {
    end -= utf8::decode_before(target.text, end).length;
  }
  target.push(id, begin, end);
}

}  // namespace finetune
