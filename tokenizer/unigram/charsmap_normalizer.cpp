// Finds clusters, replaces them by the map, and assigns source bytes to the result.
#include "tokenizer/unigram/charsmap_normalizer.h"

#include <algorithm>

#include "core/text/utf8.h"
#include "tokenizer/unicode/code_point_ranges.h"

namespace finetune::unigram {
namespace {

constexpr char32_t kCodePoints = 0x110000;
constexpr size_t kLongestCluster = 5;  // in bytes; longer ones are replaced char by char

int64_t count_chars(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (uint8_t(c) & 0xC0) != 0x80; });
}

// The end of the cluster that begins at `at`, in bytes.
size_t cluster_end(const CharFlags& flags, std::string_view text, size_t at) {
  utf8::Decoded last = utf8::decode(text, at);
  size_t end = at + last.length;
  if (last.c == '\r' && end < text.size() && text[end] == '\n') return end + 1;
  while (end < text.size() && !(flags[last.c] & kStandsAlone)) {
    const utf8::Decoded next = utf8::decode(text, end);
    const bool joined = flags[last.c] & kPrepended ? !(flags[next.c] & kStandsAlone)
                                                   : (flags[next.c] & kJoining) != 0;
    if (!joined) break;
    end += next.length;
    last = next;
  }
  return end;
}

// Records that `with` stands for `old_count` characters. Removed characters count for the character
// before them, whatever its own change was. If there is none, they are lost.
void push_replacement(std::string_view with, int64_t old_count, std::vector<Change>& changes) {
  const size_t first = changes.size();
  for (size_t at = 0; at < with.size();) {
    const utf8::Decoded d = utf8::decode(with, at);
    changes.push_back({d.c, 0});
    at += d.length;
  }
  const int64_t difference = int64_t(changes.size() - first) - old_count;
  if (difference < 0 && !changes.empty()) changes.back().change += difference;
  for (int64_t i = 0; i < difference; ++i) changes[changes.size() - 1 - size_t(i)].change = 1;
}

}  // namespace

CharFlags::CharFlags(const CharsMap* map) : flags_(kCodePoints) {
  using unicode::for_each_in_ranges;
  for_each_in_ranges(kJoiningRanges, [&](char32_t c) { add(c, kJoining); });
  for_each_in_ranges(kPrependedRanges, [&](char32_t c) { add(c, kPrepended); });
  for_each_in_ranges(kControlRanges, [&](char32_t c) { add(c, kStandsAlone); });
  for_each_in_ranges(unicode::kWhiteSpaceRanges, [&](char32_t c) { add(c, kWhiteSpace); });
  if (map == nullptr) return;
  map->for_each_replaced_char([&](char32_t first, char32_t last) {
    for (char32_t c = first; c <= last && c < kCodePoints; ++c) add(c, kReplaced);
  });
}

bool normalize_clusters(const CharsMap& map, const CharFlags& flags, std::string_view text,
                        size_t begin, size_t end, std::vector<Change>& changes,
                        unicode::SourcedText& out) {
  changes.clear();
  const std::string_view before_end = text.substr(0, end);
  int64_t old_count = 0;
  for (size_t at = begin; at < end;) {
    const size_t stop = cluster_end(flags, before_end, at);
    const std::string_view cluster = text.substr(at, stop - at);
    const int64_t chars = count_chars(cluster);
    old_count += chars;
    if (chars > 1 && cluster.size() <= kLongestCluster) {
      if (const auto with = map.find(cluster)) {
        push_replacement(*with, chars, changes);
        at = stop;
        continue;
      }
    }
    while (at < stop) {
      const utf8::Decoded d = utf8::decode(text, at);
      const auto with = flags[d.c] & kReplaced ? map.find(text.substr(at, d.length)) : std::nullopt;
      if (with) {
        push_replacement(*with, 1, changes);
      } else {
        changes.push_back({d.c, 0});
      }
      at += d.length;
    }
  }
  // Assign the sources in order.
  uint32_t source_begin = uint32_t(begin), source_end = uint32_t(begin);
  const auto take = [&] {
    --old_count;
    source_begin = source_end;
    source_end += utf8::decode(text, source_begin).length;
  };
  for (const Change& change : changes) {
    if (change.change > 0) {
      out.append(change.c, source_begin, source_end);
      continue;
    }
    take();
    out.append(change.c, source_begin, source_end);
    for (int64_t i = change.change; i < 0; ++i) take();
  }
  return old_count > 0;
}

}  // namespace finetune::unigram
