// Cleans, lower-cases, decomposes and strips accents, and tracks source bytes.
#include "tokenizer/unicode/bert_normalizer.h"

#include <algorithm>

#include "core/text/utf8.h"
#include "tokenizer/unicode/unicode_tables.h"

namespace finetune {

using namespace unicode;

void BertNormalizer::normalize(std::string_view text, uint32_t begin, uint32_t end,
                               Scratch& scratch) const {
  scratch.chars.clear();
  scratch.run.clear();
  scratch.sources.clear();
  scratch.last = {begin, begin};
  const char* stop = text.data() + end;
  while (begin < end) {
    utf8::Decoded decoded = utf8::decode(text.data() + begin, stop);
    char32_t c = decoded.c;
    uint32_t e = entry(c);
    uint32_t after = begin + decoded.length;
    if (options_.clean_text && (e & (kControl | kSpace))) {
      if (!(e & kControl)) {
        c = ' ';
        e = entry(c);
      } else {
        begin = after;
        continue;
      }
    }
    bool alone = options_.handle_chinese_chars && (e & kCjk);
    if (alone) decompose(' ', entry(' '), begin, after, scratch);
    decompose(c, e, begin, after, scratch);
    if (alone) decompose(' ', entry(' '), begin, after, scratch);
    begin = after;
  }
  flush(scratch);
}

// The decomposition of NFD; holds back characters that canonical ordering may still move.
void BertNormalizer::decompose(char32_t c, uint32_t e, uint32_t begin, uint32_t end,
                               Scratch& scratch) const {
  if (!options_.strip_accents) return emit(c, e, begin, end, scratch);
  bool hangul = c - kHangulFirst < kHangulCount;
  if (!hangul && mapping(e).canonical_length == 0) {
    if (combining_class(e) == 0 || (e & kLate)) {
      flush(scratch);
      scratch.last = {begin, end};
      return emit(c, e, begin, end, scratch);
    }
    scratch.run.push_back({c, e, true});
    scratch.sources.push_back({begin, end});
    return;
  }
  bool first = true;
  unicode::decompose(c, false, [&](char32_t part) {
    uint32_t part_entry = entry(part);
    if (combining_class(part_entry) == 0 || (part_entry & kLate)) {
      flush(scratch);
      if (first) scratch.last = {begin, end};
      emit(part, part_entry, scratch.last.begin, scratch.last.end, scratch);
    } else {
      scratch.run.push_back({part, part_entry, first});
      if (first) scratch.sources.push_back({begin, end});
    }
    first = false;
  });
}

// Canonical order. As in Hugging Face, sources are assigned by position, not by character: each
// first part takes the next source of the run, each later part repeats the previous one.
void BertNormalizer::flush(Scratch& scratch) const {
  if (scratch.run.empty()) return;
  std::stable_sort(scratch.run.begin(), scratch.run.end(), [](const auto& a, const auto& b) {
    return combining_class(a.entry) < combining_class(b.entry);
  });
  size_t next = 0;
  for (const Scratch::Part& part : scratch.run) {
    if (part.first) scratch.last = scratch.sources[next++];
    emit(part.c, part.entry, scratch.last.begin, scratch.last.end, scratch);
  }
  scratch.run.clear();
  scratch.sources.clear();
}

void BertNormalizer::emit(char32_t c, uint32_t e, uint32_t begin, uint32_t end,
                          Scratch& scratch) const {
  if (options_.strip_accents && (e & kMark)) return;
  if (options_.lowercase) {
    if (c == 0x130) {
      scratch.chars.push_back({U'i', entry(U'i'), begin, end});
      scratch.chars.push_back({0x307, entry(0x307), begin, end});
      return;
    }
    if (e >> 16) {
      c = mapping(e).lower;
      e = entry(c);
    }
  }
  scratch.chars.push_back({c, e & 0xFF, begin, end});
}

}  // namespace finetune
