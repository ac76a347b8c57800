// Splits the first rows by each delimiter and looks at the result.
#include "data/rows/table_shape.h"

#include <algorithm>
#include <cctype>

#include "core/text/text.h"
#include "data/rows/row_grammar.h"

namespace finetune {
namespace {

constexpr std::string_view kTried = "\t,;|";  // the first of equally good ones wins
constexpr size_t kLeastWidth = 3;             // texts rarely have this many columns by chance

struct FirstRow {
  uint32_t line = 0;
  std::vector<std::string> values;
};

// Returns the complete rows that are not blank, up to the first bad one.
std::vector<FirstRow> first_rows(std::string_view text, bool last, char delimiter) {
  std::vector<FirstRow> rows;
  TextArena arena;
  Values values;
  for (uint32_t line = 1; !text.empty();) {
    const RowScan scan = delimiter == '\t' ? scan_tsv(text, last, values)
                                           : scan_csv(text, last, delimiter, values, arena);
    if (scan.state != RowScan::State::row) break;
    if (!values.empty()) {
      FirstRow& row = rows.emplace_back();
      row.line = line;
      for (std::string_view value : values) row.values.emplace_back(trim(value));
    }
    line += scan.lines;
    text.remove_prefix(scan.size);
  }
  return rows;
}

bool has_letter(std::string_view value) {
  return std::any_of(value.begin(), value.end(),
                     [](unsigned char c) { return std::isalpha(c) || c >= 0x80; });
}

bool has_digit(std::string_view value) {
  return std::any_of(value.begin(), value.end(), [](unsigned char c) { return std::isdigit(c); });
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// Column names contain letters. After a trailing delimiter the name is empty.
bool are_names(const std::vector<std::string>& values) {
  const size_t named = values.size() - (values.back().empty() ? 1 : 0);
  return named > 1 && std::all_of(values.begin(), values.begin() + ptrdiff_t(named), has_letter);
}

bool are_mostly_empty(const std::vector<std::string>& values) {
  const auto empty = std::count_if(values.begin(), values.end(),
                                   [](const std::string& value) { return value.empty(); });
  return 2 * size_t(empty) > values.size();
}

// Returns whether most rows below `place`, of which there is at least one, have as many values as
// that row.
bool sets_width(const std::vector<FirstRow>& rows, size_t place) {
  const size_t width = rows[place].values.size();
  const auto same = std::count_if(rows.begin() + ptrdiff_t(place) + 1, rows.end(),
                                  [&](const FirstRow& row) { return row.values.size() == width; });
  return 2 * size_t(same) > rows.size() - place - 1;
}

// Returns whether a named column holds numbers; texts with commas have no such column.
bool has_figures(const std::vector<FirstRow>& rows) {
  for (size_t column = 0; column < rows[0].values.size(); ++column) {
    if (has_digit(rows[0].values[column])) continue;
    const bool figures = std::all_of(rows.begin() + 1, rows.end(), [&](const FirstRow& row) {
      return column < row.values.size() && has_digit(row.values[column]) &&
             !has_letter(row.values[column]);
    });
    if (figures) return true;
  }
  return false;
}

bool is_table(const std::vector<FirstRow>& rows, std::string_view text, char delimiter) {
  if (rows.size() < 2 || !sets_width(rows, 0)) return false;
  const size_t width = rows[0].values.size();
  const auto has_width = [&](const FirstRow& row) { return row.values.size() == width; };
  if (width < 2) return false;
  if (width < kLeastWidth && !std::all_of(rows.begin(), rows.end(), has_width)) return false;
  // In a text a space follows each comma ("SHELL, TORONTO, ON"), in a table it does not.
  const std::string_view first = text.substr(0, text.find('\n'));
  const auto delimiters = std::count(first.begin(), first.end(), delimiter);
  int64_t spaced = 0;
  for (size_t at = first.find(delimiter); at < first.size(); at = first.find(delimiter, at + 1)) {
    spaced += first.substr(at + 1).starts_with(' ');
  }
  return delimiters == 0 || spaced < delimiters || has_figures(rows);
}

// Whether the first row is the header: it names columns, and all rows have as many values.
bool begins_with_header(const std::vector<FirstRow>& rows) {
  return rows.size() > 1 && are_names(rows[0].values) &&
         std::all_of(rows.begin(), rows.end(), [&](const FirstRow& row) {
           return row.values.size() == rows[0].values.size();
         });
}

bool has_any(const std::vector<std::string>& names, const std::vector<std::string>& columns) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return contains(columns, name); });
}

std::optional<size_t> place_of_header(const std::vector<FirstRow>& rows,
                                      const std::vector<std::string>& columns) {
  if (rows.empty()) return std::nullopt;
  const std::vector<std::string>& first = rows[0].values;
  if (has_any(first, columns)) return std::nullopt;
  for (size_t i = 1; i + 1 < rows.size(); ++i) {
    const std::vector<std::string>& names = rows[i].values;
    const bool wider = names.size() > first.size() + (names.back().empty() ? 1 : 0) ||
                       (names.size() == first.size() && are_mostly_empty(first));
    const bool known = has_any(names, columns);
    if (!wider || (names.size() < kLeastWidth && !known)) continue;
    if (are_names(names) && sets_width(rows, i)) return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<char> table_delimiter(std::string_view text, bool last) {
  std::optional<char> best;
  size_t most = 1;
  bool is_first = false;  // whether the first row is a header by one of the delimiters
  for (const char delimiter : kTried) {
    const std::vector<FirstRow> rows = first_rows(text, last, delimiter);
    is_first = is_first || begins_with_header(rows);
  }
  for (const char delimiter : kTried) {
    const std::vector<FirstRow> rows = first_rows(text, last, delimiter);
    const std::optional<size_t> below = is_first ? std::nullopt : place_of_header(rows, {});
    if (!below && !is_table(rows, text, delimiter)) continue;
    const size_t width = rows[below.value_or(0)].values.size();
    if (width <= most) continue;
    most = width;
    best = delimiter;
  }
  return best;
}

std::optional<char> header_delimiter(std::string_view text, bool last, char delimiter,
                                     const std::vector<std::string>& columns) {
  if (columns.empty()) return std::nullopt;
  for (const char tried : delimiter != '\0' ? std::string_view(&delimiter, 1) : kTried) {
    const std::vector<FirstRow> rows = first_rows(text, last, tried);
    if (rows.empty()) continue;
    const std::vector<std::string>& names = rows[0].values;
    const bool all = std::all_of(columns.begin(), columns.end(), [&](const std::string& column) {
      return contains(names, column);
    });
    const bool fits =
        rows.size() == 1 || std::any_of(rows.begin() + 1, rows.end(), [&](const FirstRow& row) {
          return row.values.size() == names.size();
        });
    if (all && fits) return names.size() == 1 ? ',' : tried;
  }
  return std::nullopt;
}

std::optional<HeaderBelow> header_below(std::string_view text, bool last, char delimiter,
                                        const std::vector<std::string>& columns) {
  std::optional<HeaderBelow> best;
  bool is_first = false;  // whether the first row is a header by one of the delimiters
  for (const char tried : delimiter != '\0' ? std::string_view(&delimiter, 1) : kTried) {
    std::vector<FirstRow> rows = first_rows(text, last, tried);
    if (!rows.empty() && has_any(rows[0].values, columns)) return std::nullopt;
    is_first = is_first || begins_with_header(rows);
    const std::optional<size_t> place = place_of_header(rows, columns);
    if (!place) continue;
    FirstRow& header = rows[*place];
    if (best && header.values.size() <= best->names.size()) continue;
    best = {header.line, std::move(header.values)};
  }
  // If the first row is a header by another delimiter, only a named column proves a header below.
  if (best && is_first && !has_any(best->names, columns)) return std::nullopt;
  return best;
}

}  // namespace finetune
