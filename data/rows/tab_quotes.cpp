// Reads a TSV line by line, and again as CSV if its lines have different widths.
#include "data/rows/tab_quotes.h"

#include <algorithm>

#include "data/rows/row_grammar.h"
#include "data/rows/row_stream.h"

namespace finetune {
namespace {

// How many lines to read after a value that is not quoted as a whole. A quoted value that continues
// on the next line makes widths differ sooner.
constexpr int kMostLinesOn = 1000;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool has_quote(std::string_view text) {
  return text.find('"') != std::string_view::npos;
}

// Calls see(row, values) for each row that is not blank until it returns false. Returns false if a
// row is bad or too long.
template <typename Scan, typename See>
bool for_each_row(ByteWindow window, Scan&& scan, See&& see) {
  TextArena arena;
  Values values;
  while (window.bytes().size() < kByteOrderMark.size() && !window.last()) window.more();
  if (window.bytes().starts_with(kByteOrderMark)) window.drop(kByteOrderMark.size());
  for (;;) {
    if (window.bytes().empty() && window.last()) return true;
    if (!window.bytes().empty()) {
      arena.clear();
      const std::string_view text = window.bytes().substr(0, kMostRowBytes + 1);
      const bool whole = window.last() && text.size() == window.bytes().size();
      const RowScan row = scan(text, whole, values, arena);
      if (row.state == RowScan::State::bad) return false;
      if (row.state == RowScan::State::incomplete && text.size() > kMostRowBytes) return false;
      if (row.state == RowScan::State::row) {
        if (!values.empty() && !see(text.substr(0, row.size), values)) return true;
        window.drop(row.size);
        continue;
      }
    }
    window.more();
  }
}

// Returns whether the value is enclosed in quotes, with inner quotes doubled.
bool is_quoted(std::string_view value) {
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') return false;
  value = value.substr(1, value.size() - 2);
  for (size_t at = value.find('"'); at < value.size(); at = value.find('"', at + 2)) {
    if (!value.substr(at + 1).starts_with('"')) return false;
  }
  return true;
}

struct Lines {
  bool has_quotes = false, are_even = true, have_whole_values = true;
};

Lines look_at_lines(ByteWindow window) {
  Lines found;
  size_t width = 0;
  int left = kMostLinesOn;
  const auto scan = [](std::string_view text, bool last, Values& values, TextArena&) {
    return scan_tsv(text, last, values);
  };
  for_each_row(std::move(window), scan, [&](std::string_view row, const Values& values) {
    if (width == 0) width = values.size();
    found.are_even = values.size() == width;
    if (!found.are_even) return false;
    if (has_quote(row)) {
      found.has_quotes = true;
      found.have_whole_values &= std::all_of(values.begin(), values.end(), [](std::string_view v) {
        return !has_quote(v) || is_quoted(v);
      });
    }
    return found.have_whole_values || --left > 0;
  });
  return found;
}

// Returns whether there are rows and, with quotes read, all have the same width.
bool has_quoted_rows(ByteWindow window) {
  size_t width = 0;
  bool quotes = false, consistent = true;
  const auto scan = [](std::string_view text, bool last, Values& values, TextArena& arena) {
    return scan_csv(text, last, '\t', values, arena);
  };
  const bool whole =
      for_each_row(std::move(window), scan, [&](std::string_view row, const Values& values) {
        if (width == 0) width = values.size();
        quotes |= has_quote(row);
        // an unquoted value as it stands in the row
        const auto is_bare = [&](std::string_view value) {
          return value.data() >= row.data() && value.data() < row.data() + row.size() &&
                 has_quote(value);
        };
        consistent = values.size() == width && std::none_of(values.begin(), values.end(), is_bare);
        return consistent;
      });
  return whole && quotes && consistent;
}

}  // namespace

bool has_quoted_values(const std::function<ByteWindow()>& open) {
  const Lines lines = look_at_lines(open());
  if (!lines.are_even) return has_quoted_rows(open());
  return lines.has_quotes && lines.have_whole_values;
}

}  // namespace finetune
