// Composes characters, and counts how many source characters each result stands for.
#include "tokenizer/unicode/source_composition.h"

#include <algorithm>
#include <cstddef>

#include "core/text/utf8.h"
#include "tokenizer/unicode/composition.h"
#include "tokenizer/unicode/unicode_tables.h"

namespace finetune::unicode {
namespace {

constexpr char32_t kSimpleFrom = 0x30000;  // no character from here on composes or is reordered

// A character and its change: 0 if it stands for one source character, -n if it stands for n more,
// 1 if it was inserted and shares the source of the character before it.
struct Changed {
  char32_t c;
  int change;
};

int class_of(char32_t c) {
  const uint32_t e = entry(c);
  return e & kLate ? 0 : combining_class(e);
}

void sort_marks(std::vector<Changed>& chars, size_t begin) {
  std::stable_sort(
      chars.begin() + std::ptrdiff_t(begin), chars.end(),
      [](const Changed& a, const Changed& b) { return class_of(a.c) < class_of(b.c); });
}

std::vector<Changed> decomposed(std::string_view text, bool compatible) {
  std::vector<Changed> out;
  size_t marks = 0;  // where the marks behind the last starter begin
  for (size_t at = 0; at < text.size();) {
    const utf8::Decoded d = utf8::decode(text, at);
    at += d.length;
    int change = 0;
    decompose(d.c, compatible, [&](char32_t part) {
      if (class_of(part) == 0) {
        sort_marks(out, marks);
        marks = out.size() + 1;
      }
      out.push_back({part, change});
      change = 1;
    });
  }
  sort_marks(out, std::min(marks, out.size()));
  return out;
}

std::vector<Changed> recomposed(const std::vector<Changed>& parts) {
  std::vector<Changed> out;
  size_t starter = SIZE_MAX;  // in `out`: the character that later ones may join
  int last_class = -1;        // class of the last mark behind it that did not join; -1: none
  for (const Changed& part : parts) {
    const int own_class = class_of(part.c);
    if (starter != SIZE_MAX && last_class < own_class) {
      if (const char32_t both = composition_of(out[starter].c, part.c)) {
        out[starter] = {both, out[starter].change + part.change - 1};
        continue;
      }
    }
    if (own_class == 0) starter = out.size();
    last_class = own_class == 0 ? -1 : own_class;
    out.push_back(part);
  }
  return out;
}

// The set of characters that NFC may change, or that may join the character before them.
class ComposingChars {
 public:
  ComposingChars() : bits_(kSimpleFrom) {
    for (char32_t c = 0; c < kSimpleFrom; ++c) {
      if (class_of(c) != 0) bits_[c] = true;
      const Mapping& m = mapping(entry(c));
      if (m.canonical_length == 0) continue;
      std::string own;
      utf8::append(c, own);
      SourcedText result;
      compose_with_sources(own, 0, result);
      if (result.text != own) bits_[c] = true;
      if (m.canonical_length > 1) bits_[kPool[m.canonical + m.canonical_length - 1]] = true;
    }
    for (char32_t jamo = 0x1161; jamo < 0x1200; ++jamo) bits_[jamo] = true;
  }
  bool operator[](char32_t c) const { return c < kSimpleFrom && bits_[c]; }

 private:
  std::vector<bool> bits_;
};

}  // namespace

void SourcedText::clear() {
  text.clear();
  begins.clear();
  ends.clear();
}

void SourcedText::append(char32_t c, uint32_t begin, uint32_t end) {
  utf8::append(c, text);
  begins.resize(text.size(), begin);
  ends.resize(text.size(), end);
}

void decompose_with_sources(const SourcedText& from, SourcedText& out) {
  size_t next = 0, source = 0;  // bytes of `from`
  for (const Changed& each : decomposed(from.text, true)) {
    if (each.change == 0) {
      source = next;
      next += utf8::decode(from.text, next).length;
    }
    out.append(each.c, from.begins[source], from.ends[source]);
  }
}

bool may_compose(std::string_view text) {
  static const ComposingChars composing;
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    if (uint8_t(*p) < 0xCC) {  // below U+0300
      p += uint8_t(*p) < 0x80 ? 1 : 2;
      continue;
    }
    const utf8::Decoded d = utf8::decode(p, end);
    if (composing[d.c]) return true;
    p += d.length;
  }
  return false;
}

void compose_with_sources(std::string_view text, uint32_t base, SourcedText& out) {
  std::vector<uint32_t> starts;  // where the source's characters begin, and its end
  for (size_t at = 0; at < text.size(); at += utf8::decode(text, at).length) {
    starts.push_back(base + uint32_t(at));
  }
  starts.push_back(base + uint32_t(text.size()));
  size_t taken = 0;
  for (const Changed& each : recomposed(decomposed(text, false))) {
    const size_t source = each.change > 0 ? taken - std::min<size_t>(taken, 1) : taken;
    const bool exists = source + 1 < starts.size() && !(each.change > 0 && taken == 0);
    out.append(each.c, exists ? starts[source] : base, exists ? starts[source + 1] : base);
    if (each.change <= 0) taken += size_t(1 - each.change);
  }
}

}  // namespace finetune::unicode
