// Encodes text by WordPiece: a fast path for ASCII words, normalization for the rest.
#include "tokenizer/wordpiece/wordpiece_tokenizer.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/per_thread.h"
#include "core/text/utf8.h"
#include "tokenizer/unicode/unicode_tables.h"

namespace finetune {

struct WordPieceTokenizer::Scratch {
  BertNormalizer::Scratch normalizer;
  std::string bytes;                  // bytes of one word
  std::vector<uint32_t> char_of;      // byte of `bytes` -> character
  std::string normalized;             // a normalized segment, if added tokens are matched in it
  std::vector<uint32_t> char_begins;  // byte of `normalized` -> character
};

namespace {

void push(TokenBuffer& out, int32_t id, uint32_t begin, uint32_t end) {
  out.ids.push_back(id);
  out.begins.push_back(begin);
  out.ends.push_back(end);
}

void shorten(TokenBuffer& out, size_t size) {
  out.ids.resize(size);
  out.begins.resize(size);
  out.ends.resize(size);
}

// Reserves room for the tokens of `bytes` of typical text, growing geometrically over many calls.
void make_room(TokenBuffer& out, size_t bytes) {
  size_t need = out.size() + bytes / 3 + 8;
  if (need <= out.ids.capacity()) return;
  need = std::max(need, 2 * out.ids.capacity());
  out.ids.reserve(need);
  out.begins.reserve(need);
  out.ends.reserve(need);
}

bool ascii_alphanumeric(uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

}  // namespace

WordPieceTokenizer::WordPieceTokenizer(WordPieceDefinition definition)
    : definition_(std::move(definition)), normalizer_(definition_.normalizer) {
  special_ = definition_.special;
  stated_ = definition_.stated;
  FINETUNE_CHECK(special_.unk >= 0);
  build_byte_classes();
  build_pieces();
  build_added_tokens();
}

// Bytes other than letters, digits, spaces and punctuation go through BertNormalizer.
void WordPieceTokenizer::build_byte_classes() {
  const NormalizerOptions& options = definition_.normalizer;
  for (uint32_t b = 0; b < 256; ++b) {
    classes_[b] = kOtherByte;
    lower_[b] = uint8_t(b >= 'A' && b <= 'Z' && options.lowercase ? b + 32 : b);
    if (b >= 128) continue;
    if (ascii_alphanumeric(b)) classes_[b] = kWordByte;
    if (unicode::has(b, unicode::kPunctuation)) classes_[b] = kPunctuationByte;
    bool dropped = options.clean_text && unicode::has(b, unicode::kControl);
    if (unicode::has(b, unicode::kSpace) && !dropped) classes_[b] = kSpaceByte;
  }
  // Only letters and digits are lower-cased by this mask; digits have the bit set already.
  if (options.lowercase) lower_bits_ = 0x2020202020202020u;
}

void WordPieceTokenizer::build_pieces() {
  const std::string& prefix = definition_.continuing_prefix;
  std::vector<std::pair<std::string_view, int32_t>> initial, continuation;
  size_t short_words = 0;
  const auto outside = outside_model(definition_.added);
  for (const auto& [piece, id] : definition_.vocabulary.sorted()) {
    if (outside.contains(piece)) continue;
    if (piece.size() > prefix.size() && piece.starts_with(prefix)) {
      continuation.push_back({piece.substr(prefix.size()), id});
    }
    // A word contains no ASCII punctuation unless it is a single punctuation character.
    bool reachable = piece.size() == 1 || std::none_of(piece.begin(), piece.end(), [](char b) {
                       return uint8_t(b) < 128 && unicode::has(uint8_t(b), unicode::kPunctuation);
                     });
    if (piece.empty() || !reachable) continue;
    initial.push_back({piece, id});
    if (piece.size() <= WordTable::kLongest) ++short_words;
  }
  initial_.build(initial);
  continuation_.build(continuation);
  words_ = WordTable(short_words);
  for (const auto& [piece, id] : initial) {
    if (piece.size() <= WordTable::kLongest && piece.find('\0') == piece.npos) {
      words_.insert(piece, id);
    }
  }
  for (uint32_t b = 0; b < 128; ++b) {
    char c = char(b);
    int32_t id = definition_.vocabulary.find({&c, 1});
    ascii_ids_[b] = id >= 0 && !outside.contains({&c, 1}) ? id : special_.unk;
  }
}

void WordPieceTokenizer::build_added_tokens() {
  std::vector<AddedToken> raw, normalized;
  std::vector<std::string> raw_patterns, normalized_patterns;
  for (const AddedToken& token : definition_.added) {
    if (!token.normalized) {
      raw.push_back(token);
      raw_patterns.push_back(token.content);
      continue;
    }
    BertNormalizer::Scratch scratch;
    normalizer_.normalize(token.content, 0, uint32_t(token.content.size()), scratch);
    std::string pattern;
    for (const NormalizedChar& c : scratch.chars) utf8::append(c.c, pattern);
    normalized.push_back(token);
    normalized_patterns.push_back(std::move(pattern));
  }
  raw_tokens_ = AddedTokenMatcher(std::move(raw), std::move(raw_patterns));
  normalized_tokens_ = AddedTokenMatcher(std::move(normalized), std::move(normalized_patterns));
}

void WordPieceTokenizer::encode(std::string_view text, TokenBuffer& out) const {
  Scratch& scratch = per_thread<Scratch>();
  FINETUNE_CHECK(text.size() < UINT32_MAX);
  make_room(out, text.size());
  raw_tokens_.split(
      text,
      [&](size_t begin, size_t end) {
        if (normalized_tokens_.empty()) {
          encode_segment(text, uint32_t(begin), uint32_t(end), scratch, out);
        } else {
          encode_mixed_segment(text, uint32_t(begin), uint32_t(end), scratch, out);
        }
      },
      [&](const AddedTokenMatcher::Match& match) {
        push(out, match.id, uint32_t(match.begin), uint32_t(match.end));
      });
}

void WordPieceTokenizer::encode_segment(std::string_view text, uint32_t begin, uint32_t end,
                                        Scratch& scratch, TokenBuffer& out) const {
  const char* data = text.data();
  auto class_at = [&](uint32_t i) { return classes_[uint8_t(data[i])]; };
  uint32_t at = begin;
  while (at < end) {
    switch (class_at(at)) {
      case kSpaceByte:
        ++at;
        continue;
      case kPunctuationByte:
        push(out, ascii_ids_[uint8_t(data[at])], at, at + 1);
        ++at;
        continue;
      default:
        break;
    }
    uint32_t start = at;
    while (at < end && class_at(at) == kWordByte) ++at;
    if (at == end || class_at(at) != kOtherByte) {
      encode_ascii_word(text, start, at, out);
      continue;
    }
    // Normalization extends to the next ASCII space or punctuation.
    while (at < end && (class_at(at) == kWordByte || class_at(at) == kOtherByte)) ++at;
    normalizer_.normalize(text, start, at, scratch.normalizer);
    const auto& chars = scratch.normalizer.chars;
    encode_chars(chars.data(), chars.data() + chars.size(), scratch, out);
  }
}

void WordPieceTokenizer::encode_ascii_word(std::string_view text, uint32_t begin, uint32_t end,
                                           TokenBuffer& out) const {
  const char* word = text.data() + begin;
  size_t length = end - begin;
  if (int64_t(length) > definition_.max_input_chars_per_word) {
    return push(out, special_.unk, begin, end);
  }
  if (length <= WordTable::kLongest) {
    WordKey key;
    if (text.size() - begin >= sizeof key) {
      key = WordTable::key_within(word, length);
    } else {
      key = WordTable::key({word, length});
    }
    key.low |= lower_bits_ & WordTable::kMasks[length].low;
    key.high |= lower_bits_ & WordTable::kMasks[length].high;
    int32_t id = words_.find(key);
    if (id >= 0) return push(out, id, begin, end);
  }
  char buffer[128];
  std::string long_buffer;
  char* lowered = buffer;
  if (length > sizeof buffer) {
    long_buffer.resize(length);
    lowered = long_buffer.data();
  }
  for (size_t i = 0; i < length; ++i) lowered[i] = char(lower_[uint8_t(word[i])]);
  size_t before = out.size();
  for (size_t i = 0; i < length;) {
    const PieceTrie& trie = i == 0 ? initial_ : continuation_;
    PieceTrie::Match match = trie.longest(lowered + i, lowered + length);
    if (match.length == 0) {
      shorten(out, before);
      return push(out, special_.unk, begin, end);
    }
    push(out, match.value, begin + uint32_t(i), begin + uint32_t(i) + match.length);
    i += match.length;
  }
}

void WordPieceTokenizer::encode_chars(const NormalizedChar* begin, const NormalizedChar* end,
                                      Scratch& scratch, TokenBuffer& out) const {
  constexpr uint32_t kBoundary = unicode::kSpace | unicode::kPunctuation;
  while (begin < end) {
    const NormalizedChar* stop = begin;
    while (stop < end && !(stop->flags & kBoundary)) ++stop;
    if (stop == begin) ++stop;
    if (!(begin->flags & unicode::kSpace)) encode_word(begin, stop, scratch, out);
    begin = stop;
  }
}

void WordPieceTokenizer::encode_word(const NormalizedChar* begin, const NormalizedChar* end,
                                     Scratch& scratch, TokenBuffer& out) const {
  if (end - begin > definition_.max_input_chars_per_word) {
    return push(out, special_.unk, begin->begin, end[-1].end);
  }
  std::string& bytes = scratch.bytes;
  std::vector<uint32_t>& char_of = scratch.char_of;
  bytes.clear();
  char_of.clear();
  for (const NormalizedChar* c = begin; c < end; ++c) {
    utf8::append(c->c, bytes);
    char_of.resize(bytes.size(), uint32_t(c - begin));
  }
  const char* data = bytes.data();
  size_t before = out.size();
  for (size_t i = 0; i < bytes.size();) {
    const PieceTrie& trie = i == 0 ? initial_ : continuation_;
    PieceTrie::Match match = trie.longest(data + i, data + bytes.size());
    if (match.length == 0) {
      shorten(out, before);
      return push(out, special_.unk, begin->begin, end[-1].end);
    }
    push(out, match.value, begin[char_of[i]].begin, begin[char_of[i + match.length - 1]].end);
    i += match.length;
  }
}

// If added tokens are matched in normalized text, the whole segment must be normalized.
void WordPieceTokenizer::encode_mixed_segment(std::string_view text, uint32_t begin, uint32_t end,
                                              Scratch& scratch, TokenBuffer& out) const {
  normalizer_.normalize(text, begin, end, scratch.normalizer);
  const std::vector<NormalizedChar>& chars = scratch.normalizer.chars;
  scratch.normalized.clear();
  scratch.char_begins.clear();
  for (size_t i = 0; i < chars.size(); ++i) {
    utf8::append(chars[i].c, scratch.normalized);
    scratch.char_begins.resize(scratch.normalized.size(), uint32_t(i));
  }
  scratch.char_begins.push_back(uint32_t(chars.size()));
  normalized_tokens_.split(
      scratch.normalized,
      [&](size_t from, size_t to) {
        encode_chars(chars.data() + scratch.char_begins[from],
                     chars.data() + scratch.char_begins[to], scratch, out);
      },
      [&](const AddedTokenMatcher::Match& match) {
        push(out, match.id, chars[scratch.char_begins[match.begin]].begin,
             chars[scratch.char_begins[match.end] - 1].end);
      });
}

}  // namespace finetune
