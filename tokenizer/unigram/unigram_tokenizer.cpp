// Encodes text by a unigram model: unchanged words at once, others after normalization.
#include "tokenizer/unigram/unigram_tokenizer.h"

#include <algorithm>

#include "core/per_thread.h"
#include "core/text/utf8.h"
#include "tokenizer/unicode/code_point_ranges.h"
#include "tokenizer/unicode/unicode_tables.h"
#include "tokenizer/unigram/prepared_text.h"
#include "tokenizer/valid_text.h"
#include "tokenizer/word_cache.h"

namespace finetune {

using unicode::SourcedText;
using unigram::CharFlag;
using Prefix = UnigramDefinition::Prefix;
using Kind = UnigramStep::Kind;

namespace {

constexpr char32_t kMark = 0x2581;
constexpr std::string_view kMarkBytes = "\xE2\x96\x81";
constexpr uint32_t kMarkSize = 3;
constexpr size_t kCachedWords = size_t{1} << 15;
constexpr int kWordsTogether = 3;  // the most tried before the rest of a text is normalized whole

void append_part(const SourcedText& from, size_t begin, size_t end, SourcedText& out) {
  out.text.append(from.text, begin, end - begin);
  out.begins.insert(out.begins.end(), &from.begins[begin], &from.begins[end - 1] + 1);
  out.ends.insert(out.ends.end(), &from.ends[begin], &from.ends[end - 1] + 1);
}

void erase_from(SourcedText& text, size_t begin, size_t end) {
  text.text.erase(begin, end - begin);
  for (auto array : {&SourcedText::begins, &SourcedText::ends}) {
    auto& values = text.*array;
    values.erase(values.begin() + std::ptrdiff_t(begin), values.begin() + std::ptrdiff_t(end));
  }
}

void strip(const unigram::CharFlags& flags, bool left, bool right, SourcedText& text) {
  size_t begin = 0, end = text.text.size();
  while (right && end > 0) {
    const utf8::Decoded d = utf8::decode_before(text.text, end);
    if (!(flags[d.c] & unigram::kWhiteSpace)) break;
    end -= d.length;
  }
  while (left && begin < end) {
    const utf8::Decoded d = utf8::decode(text.text, begin);
    if (!(flags[d.c] & unigram::kWhiteSpace)) break;
    begin += d.length;
  }
  erase_from(text, end, text.text.size());
  erase_from(text, 0, begin);
}

// Replaces two and more spaces by `content`, with the source of the last one.
void join_spaces(std::string_view content, SourcedText& text, SourcedText& memory) {
  if (text.text.find("  ") == std::string::npos) return;
  memory.clear();
  for (size_t at = 0; at < text.text.size();) {
    const size_t spaces = std::min(text.text.find("  ", at), text.text.size());
    if (spaces > at) append_part(text, at, spaces, memory);
    if (spaces == text.text.size()) break;
    at = std::min(text.text.find_first_not_of(' ', spaces), text.text.size());
    memory.text += content;
    memory.begins.resize(memory.text.size(), text.begins[at - 1]);
    memory.ends.resize(memory.text.size(), text.ends[at - 1]);
  }
  std::swap(text, memory);
}

}  // namespace

struct UnigramTokenizer::Scratch {
  WordCache cache{kCachedWords};
  std::vector<unigram::Change> changes;
  std::vector<unigram::UnigramModel::Node> nodes;
  std::vector<unigram::UnigramModel::Token> tokens;
  std::string word;
  SourcedText normalized, memory, marked;
};

// The text that is encoded, and the buffer that receives its tokens.
struct UnigramTokenizer::Target {
  std::string_view text;  // valid UTF-8; offsets are its bytes
  Scratch& scratch;
  TokenBuffer& out;

  void push(int32_t id, uint32_t begin, uint32_t end) {
    out.ids.push_back(id);
    out.begins.push_back(begin);
    out.ends.push_back(end);
  }
};

UnigramTokenizer::UnigramTokenizer(UnigramDefinition definition)
    : definition_(std::move(definition)),
      instance_(next_tokenizer_instance()),
      flags_(definition_.charsmap ? &*definition_.charsmap : nullptr) {
  special_ = definition_.special;
  stated_ = definition_.stated;
  joins_spaces_ = definition_.split_white_space;
  for (const UnigramStep& step : definition_.steps) {
    joins_spaces_ |= step.kind == Kind::join_spaces || step.kind == Kind::join_white_space;
  }
  skips_normalization_ = can_skip_normalization();
  flags_.add(kMark, unigram::kOther);
  for (const UnigramStep& step : definition_.steps) unigram::flag_prepared_chars(step, flags_);
  build_added_tokens();
}

// Words are independent if every text has a mark, a space stays a space, and no key of the map
// covers a space and its neighbour.
bool UnigramTokenizer::can_skip_normalization() const {
  if (definition_.prefix != Prefix::always || definition_.split_punctuation) return false;
  if (!definition_.charsmap) return true;
  bool independent = !definition_.charsmap->begins_key(" ");
  unicode::for_each_in_ranges(unigram::kPrependedRanges, [&](char32_t c) {
    std::string key;
    utf8::append(c, key);
    independent &= !definition_.charsmap->begins_key(key);
  });
  return independent;
}

void UnigramTokenizer::build_added_tokens() {
  std::vector<AddedToken> raw, normalized;
  std::vector<std::string> raw_patterns, normalized_patterns;
  is_added_.resize(size_t(vocabulary_size()));
  Scratch& scratch = per_thread<Scratch>();
  for (const AddedToken& token : definition_.added) {
    is_added_[size_t(token.id)] = true;
    if (!token.normalized) {
      raw.push_back(token);
      raw_patterns.push_back(token.content);
      continue;
    }
    SourcedText pattern;
    normalize(token.content, 0, token.content.size(), true, true, scratch, pattern);
    if (!pattern.text.empty()) {
      const char32_t first = utf8::decode(pattern.text, 0).c;
      skips_normalization_ &= !(flags_[first] & unigram::kWhiteSpace);
      flags_.add(first, unigram::kOther);
    }
    normalized.push_back(token);
    normalized_patterns.push_back(std::move(pattern.text));
  }
  raw_tokens_ = AddedTokenMatcher(std::move(raw), std::move(raw_patterns));
  normalized_tokens_ = AddedTokenMatcher(std::move(normalized), std::move(normalized_patterns));
}

bool UnigramTokenizer::continues_word(int32_t id) const {
  if (id < 0 || id >= vocabulary_size() || is_added_[size_t(id)]) return false;
  return !token(id).starts_with(kMarkBytes);
}

void UnigramTokenizer::encode(std::string_view text, TokenBuffer& out) const {
  encode_as_utf8(text, out,
                 [&](std::string_view valid, TokenBuffer& to) { encode_valid(valid, to); });
}

void UnigramTokenizer::encode_valid(std::string_view text, TokenBuffer& out) const {
  Target target{text, per_thread<Scratch>(), out};
  raw_tokens_.split(
      text, [&](size_t begin, size_t end) { encode_segment(begin, end, target); },
      [&](const AddedTokenMatcher::Match& match) {
        target.push(match.id, uint32_t(match.begin), uint32_t(match.end));
      });
}

void UnigramTokenizer::encode_segment(size_t begin, size_t end, Target& target) const {
  for (size_t at = begin; at < end;) {
    const std::string_view text = target.text;
    size_t word = at;
    while (word < end && text[word] == ' ') ++word;
    const size_t stop = skip_unchanged(text, word, end);
    const size_t spaces = word - at;
    const bool whole = stop > word && (stop == end || text[stop] == ' ');
    const bool one_mark = at == begin ? spaces == 0 : spaces == 1 || joins_spaces_;
    if (!skips_normalization_ || !whole || !one_mark) {
      at = encode_changed(begin, at, end, target);
      continue;
    }
    // The mark has the source of the space before the word, or else of its first character.
    uint32_t mark_begin = uint32_t(word - 1), mark_end = uint32_t(word);
    if (at == begin || definition_.split_white_space) {
      mark_begin = uint32_t(word);
      mark_end = uint32_t(word) + utf8::decode(text, word).length;
    }
    encode_unchanged(word, stop, mark_begin, mark_end, target);
    at = stop;
  }
}

size_t UnigramTokenizer::skip_unchanged(std::string_view text, size_t at, size_t end) const {
  const char* p = text.data() + at;
  const char* const stop = text.data() + end;
  while (p < stop) {
    if (uint8_t(*p) < 0x80) {
      if (flags_[uint8_t(*p)] != 0) break;
      ++p;
    } else {
      const utf8::Decoded d = utf8::decode(p, stop);
      if (flags_[d.c] != 0) break;
      p += d.length;
    }
  }
  return size_t(p - text.data());
}

void UnigramTokenizer::encode_unchanged(size_t begin, size_t end, uint32_t mark_begin,
                                        uint32_t mark_end, Target& target) const {
  const uint32_t at = uint32_t(begin) - kMarkSize;  // may wrap
  encode_word(target.text.substr(begin, end - begin), target.scratch,
              [&](int32_t id, uint32_t from, uint32_t to) {
                target.push(id, from == 0 ? mark_begin : at + from,
                            to == kMarkSize ? mark_end : at + to);
              });
}

size_t UnigramTokenizer::encode_changed(size_t segment, size_t at, size_t end,
                                        Target& target) const {
  const std::string_view text = target.text.substr(0, end);
  Scratch& scratch = target.scratch;
  SourcedText& normalized = scratch.normalized;
  size_t stop = at;
  for (int words = 1;; ++words) {
    stop = text.find_first_not_of(' ', stop);
    if (stop != text.npos) stop = text.find(' ', stop);
    if (stop == text.npos || words > kWordsTogether || !skips_normalization_) stop = end;
    normalized.clear();
    const bool shifted = normalize(text, at, stop, at == segment, stop == end, scratch, normalized);
    if (stop == end || (!shifted && can_end_here(normalized))) break;
  }
  normalized_tokens_.split(
      normalized.text, [&](size_t from, size_t to) { encode_piece(normalized, from, to, target); },
      [&](const AddedTokenMatcher::Match& match) {
        target.push(match.id, normalized.begins[match.begin], normalized.ends[match.end - 1]);
      });
  return stop;
}

bool UnigramTokenizer::normalize(std::string_view text, size_t begin, size_t end, bool is_first,
                                 bool is_last, Scratch& scratch, SourcedText& out) const {
  bool shifted = false;
  const auto& steps = definition_.steps;
  const bool maps_first = !steps.empty() && steps.front().kind == Kind::charsmap;
  if (!maps_first) {
    for (size_t at = begin; at < end;) {
      const utf8::Decoded d = utf8::decode(text, at);
      out.append(d.c, uint32_t(at), uint32_t(at) + d.length);
      at += d.length;
    }
  }
  for (const UnigramStep& step : steps) {
    if (step.prepares()) {
      unigram::prepare(step, flags_, out, scratch.memory);
    } else if (step.kind == Kind::charsmap && !maps_first) {
      shifted = unigram::normalize_prepared(*definition_.charsmap, flags_, scratch.changes, out,
                                            scratch.memory);
    } else if (step.kind == Kind::charsmap) {
      shifted = unigram::normalize_clusters(*definition_.charsmap, flags_, text, begin, end,
                                            scratch.changes, out);
    } else if (step.kind == Kind::strip) {
      strip(flags_, step.left && is_first, step.right && is_last, out);
    } else {
      join_spaces(step.content, out, scratch.memory);
    }
  }
  return shifted;
}

// Whether the next word may be normalized on its own, from the space before it.
bool UnigramTokenizer::can_end_here(const SourcedText& text) const {
  if (text.text.empty()) return false;
  const char32_t last = utf8::decode_before(text.text, text.text.size()).c;
  if (last == kMark || flags_[last] & unigram::kWhiteSpace) return false;
  for (size_t at = 0; at < text.text.size();) {
    const utf8::Decoded d = utf8::decode(text.text, at);
    if (flags_[d.c] & unigram::kOther) return false;
    at += d.length;
  }
  return true;
}

void UnigramTokenizer::encode_piece(const SourcedText& from, size_t begin, size_t end,
                                    Target& target) const {
  SourcedText& marked = target.scratch.marked;
  marked.clear();
  const auto is_end = [&](char32_t c) {
    return definition_.split_white_space && flags_[c] & unigram::kWhiteSpace;
  };
  for (size_t at = begin; at < end;) {
    const utf8::Decoded d = utf8::decode(from.text, at);
    const uint32_t source_begin = from.begins[at], source_end = from.ends[at];
    at += d.length;
    if (is_end(d.c)) {
      encode_marked(marked, target);
      marked.clear();
      continue;
    }
    const char32_t c = d.c == ' ' ? kMark : d.c;
    const bool alone = definition_.split_punctuation && unicode::has(c, unicode::kPunctuation);
    if (alone) {
      encode_marked(marked, target);
      marked.clear();
    }
    const bool prefixed = definition_.prefix == Prefix::always ||
                          (definition_.prefix == Prefix::first && source_begin == 0);
    if (marked.text.empty() && c != kMark && prefixed)
      marked.append(kMark, source_begin, source_end);
    marked.append(c, source_begin, source_end);
    if (alone) {
      encode_marked(marked, target);
      marked.clear();
    }
  }
  encode_marked(marked, target);
}

// Each mark begins a word.
void UnigramTokenizer::encode_marked(const SourcedText& marked, Target& target) const {
  const std::string_view text = marked.text;
  const auto push = [&](size_t at, int32_t id, size_t from, size_t to) {
    target.push(id, marked.begins[at + from], marked.ends[at + to - 1]);
  };
  for (size_t at = 0; at < text.size();) {
    const bool has_mark = text.substr(at).starts_with(kMarkBytes);
    const size_t stop =
        std::min(text.find(kMarkBytes, at + (has_mark ? kMarkSize : 0)), text.size());
    if (has_mark) {
      encode_word(text.substr(at + kMarkSize, stop - at - kMarkSize), target.scratch,
                  [&](int32_t id, size_t from, size_t to) { push(at, id, from, to); });
    } else {
      Scratch& scratch = target.scratch;
      definition_.model.encode(text.substr(at, stop - at), scratch.nodes, scratch.tokens);
      size_t from = 0;
      for (const auto& token : scratch.tokens) {
        push(at, token.id, from, token.end);
        from = token.end;
      }
    }
    at = stop;
  }
}

template <typename Push>
void UnigramTokenizer::encode_word(std::string_view word, Scratch& scratch, Push&& push) const {
  scratch.cache.encode(
      word, instance_,
      [&]() -> const auto& {
        scratch.word = kMarkBytes;
        scratch.word += word;
        definition_.model.encode(scratch.word, scratch.nodes, scratch.tokens);
        return scratch.tokens;
      },
      push);
}

}  // namespace finetune
