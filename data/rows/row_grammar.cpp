// Scanners of one row of CSV, TSV and plain text.
#include "data/rows/row_grammar.h"

#include <algorithm>
#include <cstring>

#include "core/text/quoted_string.h"
#include "core/text/text.h"

namespace finetune {
namespace {

RowScan incomplete() {
  return {.state = RowScan::State::incomplete};
}

const char* find(const char* begin, const char* end, char c) {
  return static_cast<const char*>(std::memchr(begin, c, size_t(end - begin)));
}

// Returns `field` with doubled quotes replaced by single ones.
std::string_view undouble(std::string_view field, TextArena& arena) {
  char* begin = arena.allocate(field.size());
  char* out = begin;
  for (size_t i = 0; i < field.size(); ++i) {
    *out++ = field[i];
    i += field[i] == '"';
  }
  return {begin, size_t(out - begin)};
}

// Returns the line at the beginning of `text` without its line end; sets `size` and `lines`.
std::string_view take_line(std::string_view text, bool last, RowScan& scan) {
  const char* end = find(text.data(), text.data() + text.size(), '\n');
  if (!end && !last) {
    scan.state = RowScan::State::incomplete;
    return {};
  }
  std::string_view line = text.substr(0, end ? size_t(end - text.data()) : text.size());
  scan.size = line.size() + (end != nullptr);
  scan.lines = 1;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

RowScan scan_csv(std::string_view text, bool last, const char delimiter, Values& values,
                 TextArena& arena) {
  values.clear();
  const auto ends_field = [delimiter](char c) { return c == delimiter || c == '\n' || c == '\r'; };
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const char* p = begin;
  RowScan scan;
  auto bad = [&](std::string problem) {
    return RowScan{RowScan::State::bad, 0, 0, std::move(problem), scan.lines};
  };
  for (;;) {  // p is at the start of a field
    if (values.size() == kMostColumns) return bad(std::string(kTooManyValues));
    if (p < end && *p == '"') {
      const char* field = ++p;
      bool doubled = false;
      for (;;) {
        p = find(p, end, '"');
        if (!p) {
          if (!last) return incomplete();
          return bad("the quote that opens here is never closed");
        }
        if (p + 1 == end && !last) return incomplete();
        if (p + 1 == end || p[1] != '"') break;
        doubled = true;
        p += 2;
      }
      std::string_view value(field, size_t(p - field));
      scan.lines += uint32_t(std::count(value.begin(), value.end(), '\n'));
      values.push_back(doubled ? undouble(value, arena) : value);
      ++p;
      if (p < end && !ends_field(*p)) {
        std::string_view rest(p, size_t(end - p));
        rest = rest.substr(0, rest.find_first_of("\r\n"));
        return bad(concat("text after a closing quote: ", in_quotes(rest, 20),
                          " (a quote inside a quoted value is written twice)"));
      }
    } else {
      const char* field = p;
      while (p < end && !ends_field(*p)) ++p;
      values.emplace_back(field, size_t(p - field));
    }
    if (p < end && *p == delimiter) {
      ++p;
      continue;
    }
    if (p == end) {
      if (!last) return incomplete();
    } else {
      if (*p == '\r' && p + 1 == end && !last) return incomplete();  // LF may follow
      p += *p == '\r' && p + 1 < end && p[1] == '\n' ? 2 : 1;
    }
    ++scan.lines;
    scan.size = size_t(p - begin);
    // An empty line has no values, but an empty value in quotes is one.
    if (values.size() == 1 && values[0].empty() && *begin != '"') values.clear();
    return scan;
  }
}

RowScan scan_tsv(std::string_view text, bool last, Values& values) {
  values.clear();
  RowScan scan;
  std::string_view line = take_line(text, last, scan);
  if (line.empty()) return scan;
  const char* p = line.data();
  const char* const end = p + line.size();
  for (;;) {
    const char* tab = find(p, end, '\t');
    if (values.size() == kMostColumns) {
      scan.state = RowScan::State::bad;
      scan.problem = kTooManyValues;
      return scan;
    }
    values.emplace_back(p, size_t((tab ? tab : end) - p));
    if (!tab) return scan;
    p = tab + 1;
  }
}

RowScan scan_plain_text(std::string_view text, bool last, Values& values) {
  values.clear();
  RowScan scan;
  std::string_view line = take_line(text, last, scan);
  if (scan.state == RowScan::State::row) values.push_back(line);
  return scan;
}

// fastText's words end at these characters; the line's "\r\n" is already removed.
constexpr std::string_view kFasttextBlanks(" \t\v\f\r\0", 6);

bool has_fasttext_label(std::string_view line) {
  for (size_t at = line.find(kFasttextLabel); at != line.npos;
       at = line.find(kFasttextLabel, at + 1)) {
    if (at == 0 || kFasttextBlanks.find(line[at - 1]) != kFasttextBlanks.npos) return true;
  }
  return false;
}

RowScan scan_fasttext(std::string_view text, bool last, Values& values, TextArena& arena) {
  values.clear();
  RowScan scan;
  const std::string_view line = take_line(text, last, scan);
  std::vector<std::string_view> labels, parts;  // parts: the text between labels
  size_t part = line.npos, part_end = 0;
  const auto end_part = [&] {
    if (part != line.npos) parts.push_back(line.substr(part, part_end - part));
    part = line.npos;
  };
  for (size_t at = 0; (at = line.find_first_not_of(kFasttextBlanks, at)) != line.npos;) {
    const size_t end = std::min(line.find_first_of(kFasttextBlanks, at), line.size());
    const std::string_view word = line.substr(at, end - at);
    if (word.starts_with(kFasttextLabel)) {
      labels.push_back(word.substr(kFasttextLabel.size()));
      end_part();
    } else {
      if (part == line.npos) part = at;
      part_end = end;
    }
    at = end;
  }
  end_part();
  if (labels.empty() && parts.empty()) return scan;
  values.push_back(parts.empty() ? std::string_view() : parts[0]);
  if (parts.size() > 1) values[0] = arena.keep(join({parts.begin(), parts.end()}, " "));
  if (labels.size() < 2) {
    values.push_back(labels.empty() ? std::string_view() : labels[0]);
    return scan;
  }
  std::vector<std::string> names;
  for (std::string_view label : labels) names.push_back(double_quoted(label));
  values.push_back(arena.keep(concat("[", join(names, ", "), "]")));
  return scan;
}

}  // namespace finetune
