// Composes characters with the inverse of the decomposition table.
#include "tokenizer/unicode/composition.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "core/text/utf8.h"
#include "tokenizer/unicode/unicode_tables.h"

namespace finetune::unicode {
namespace {

struct Range {
  char32_t first, last;
};

// Unicode's CompositionExclusions.txt. Singletons and decompositions that begin with a mark are
// excluded by their form instead.
constexpr Range kNeverComposed[] = {
    {0x0958, 0x095F}, {0x09DC, 0x09DD},   {0x09DF, 0x09DF},  {0x0A33, 0x0A33}, {0x0A36, 0x0A36},
    {0x0A59, 0x0A5B}, {0x0A5E, 0x0A5E},   {0x0B5C, 0x0B5D},  {0x0F43, 0x0F43}, {0x0F4D, 0x0F4D},
    {0x0F52, 0x0F52}, {0x0F57, 0x0F57},   {0x0F5C, 0x0F5C},  {0x0F69, 0x0F69}, {0x0F76, 0x0F76},
    {0x0F78, 0x0F78}, {0x0F93, 0x0F93},   {0x0F9D, 0x0F9D},  {0x0FA2, 0x0FA2}, {0x0FA7, 0x0FA7},
    {0x0FAC, 0x0FAC}, {0x0FB9, 0x0FB9},   {0x2ADC, 0x2ADC},  {0xFB1D, 0xFB1D}, {0xFB1F, 0xFB1F},
    {0xFB2A, 0xFB36}, {0xFB38, 0xFB3C},   {0xFB3E, 0xFB3E},  {0xFB40, 0xFB41}, {0xFB43, 0xFB44},
    {0xFB46, 0xFB4E}, {0x1D15E, 0x1D164}, {0x1D1BB, 0x1D1C0}};

constexpr Range kIgnorable[] = {
    {0x00AD, 0x00AD},   {0x034F, 0x034F},  {0x061C, 0x061C}, {0x115F, 0x1160}, {0x17B4, 0x17B5},
    {0x180B, 0x180F},   {0x200B, 0x200F},  {0x202A, 0x202E}, {0x2060, 0x206F}, {0x3164, 0x3164},
    {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},  {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFF8}, {0x1BCA0, 0x1BCA3},
    {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}};

template <size_t N>
bool is_in(const Range (&ranges)[N], char32_t c) {
  return std::any_of(ranges, ranges + N,
                     [&](const Range& range) { return c >= range.first && c <= range.last; });
}

constexpr char32_t kLastWithDecomposition = 0x2FA1D;
constexpr char32_t kLead = 0x1100, kVowel = 0x1161, kTail = 0x11A7;  // Hangul jamo
constexpr char32_t kLeads = 19, kVowels = 21, kTails = 28;

uint64_t pair_of(char32_t first, char32_t second) {
  return uint64_t(first) << 32 | second;
}

using Pairs = std::unordered_map<uint64_t, char32_t>;

// The table holds full decompositions: all parts but the last are composed to find the pair.
Pairs make_pairs() {
  struct Composed {
    std::u32string parts;
    char32_t c;
  };
  std::vector<Composed> all;
  for (char32_t c = 0; c <= kLastWithDecomposition; ++c) {
    const Mapping& m = mapping(entry(c));
    if (m.canonical_length < 2 || is_in(kNeverComposed, c)) continue;
    const std::u32string parts(kPool + m.canonical, m.canonical_length);
    if (combining_class(entry(c)) != 0 || combining_class(entry(parts[0])) != 0) continue;
    all.push_back({parts, c});
  }
  std::unordered_map<std::u32string, char32_t> whole;
  for (const Composed& each : all) whole.emplace(each.parts, each.c);
  Pairs pairs;
  for (const Composed& each : all) {
    const std::u32string head = each.parts.substr(0, each.parts.size() - 1);
    const auto found = whole.find(head);
    if (head.size() > 1 && found == whole.end()) continue;
    pairs.emplace(pair_of(head.size() == 1 ? head[0] : found->second, each.parts.back()), each.c);
  }
  return pairs;
}

std::u32string decomposed(std::string_view text) {
  std::u32string out;
  for (size_t at = 0; at < text.size();) {
    const utf8::Decoded d = utf8::decode(text, at);
    decompose(d.c, false, [&](char32_t part) { out += part; });
    at += d.length;
  }
  const auto is_starter = [](char32_t c) { return combining_class(entry(c)) == 0; };
  for (auto begin = out.begin(); begin != out.end();) {
    begin = std::find_if_not(begin, out.end(), is_starter);
    const auto end = std::find_if(begin, out.end(), is_starter);
    std::stable_sort(begin, end, [](char32_t a, char32_t b) {
      return combining_class(entry(a)) < combining_class(entry(b));
    });
    begin = end;
  }
  return out;
}

}  // namespace

char32_t composition_of(char32_t first, char32_t second) {
  if (first - kLead < kLeads && second - kVowel < kVowels) {
    return kHangulFirst + ((first - kLead) * kVowels + (second - kVowel)) * kTails;
  }
  const char32_t syllable = first - kHangulFirst;
  if (syllable < kHangulCount && syllable % kTails == 0 && second - kTail < kTails &&
      second != kTail) {
    return first + (second - kTail);
  }
  static const Pairs pairs = make_pairs();
  const auto found = pairs.find(pair_of(first, second));
  return found == pairs.end() ? 0 : found->second;
}

std::string composed(std::string_view text) {
  const bool is_ascii = std::all_of(text.begin(), text.end(),
                                    [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (is_ascii) return std::string(text);
  std::u32string out;
  size_t starter = std::u32string::npos;  // the last starter, which later characters may join
  int last_class = -1;                    // class of the character after it, or -1
  for (char32_t c : decomposed(text)) {
    const int own_class = combining_class(entry(c));
    if (starter != std::u32string::npos && last_class < own_class) {
      const char32_t both = composition_of(out[starter], c);
      if (both != 0) {
        out[starter] = both;
        continue;
      }
    }
    if (own_class == 0) starter = out.size();
    last_class = own_class == 0 ? -1 : own_class;
    out += c;
  }
  std::string result;
  for (char32_t c : out) utf8::append(c, result);
  return result;
}

bool is_invisible(char32_t c) {
  const bool is_control = c < 0x20 || (c >= 0x7F && c < 0xA0);
  return is_control ? !has(c, kSpace) : is_in(kIgnorable, c);
}

}  // namespace finetune::unicode
