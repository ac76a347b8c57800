// What a RowStream detects before the first row: format, delimiter, quotes, columns.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/text/counted.h"
#include "core/text/printable.h"
#include "data/rows/row_stream.h"
#include "data/rows/tab_quotes.h"
#include "data/rows/table_shape.h"
#include "data/source/byte_source.h"

namespace finetune {
namespace {

// Returns a command that skips the first lines of the file, or "" if the file is packed or encoded,
// so that its lines are not those of `text`.
std::string tail_command(const fs::path& file, std::string_view text, uint32_t line) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return "";
  std::string stored(text.size() + 16, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(stored.data(), std::streamsize(stored.size()));
  stored.resize(size_t(in.gcount()));
  const bool same = stored.find(text.substr(0, 1024)) != std::string::npos;
  return same && text.find('\n') != std::string_view::npos ? concat(" (tail -n +", line, ")") : "";
}

}  // namespace

RowStream::RowStream(const fs::path& path, ByteWindow window, Options options, TextArena& arena)
    : path_(path),
      name_(input_name(path)),
      window_(std::move(window)),
      options_(std::move(options)),
      arena_(arena) {
  see(4);
  if (window_.bytes().starts_with("\xEF\xBB\xBF")) window_.drop(3);
  if (window_.bytes().starts_with('\0')) {
    throw data_error(name_, ": begins with a NUL byte; this is not a text file");
  }
  find_format(path);
  if (format_ == RowFormat::tsv) find_quotes();
  if (format_ == RowFormat::csv && !has_quoted_tabs_) find_delimiter();
  read_columns();
  in_header_ = false;
}

// Reads until `size` bytes are in memory, or the input ends.
void RowStream::see(size_t size) {
  while (window_.bytes().size() < size && !window_.last()) window_.more();
}

void RowStream::find_format(const fs::path& path) {
  const RowOptions& given = options_.rows;
  if (given.format) {
    format_ = *given.format;
    return;
  }
  if (!given.first_line_decides) see(kShapeBytes);
  std::string_view begin = first_line();
  if (trim(begin).empty()) begin = window_.bytes().substr(0, kShapeBytes);
  begin.remove_prefix(std::min(begin.find_first_not_of(" \t\r\n"), begin.size()));
  begin = begin.substr(0, begin.find_first_of("\r\n"));
  const bool has_labels = given.delimiter == '\0' && has_fasttext_label(begin);
  const std::string_view text = window_.bytes().substr(0, kShapeBytes);
  const bool last = window_.last() && text.size() == window_.bytes().size();
  const std::optional<RowFormat> by_suffix = format_by_suffix(path, text);
  if (has_labels && (!by_suffix || *by_suffix == RowFormat::plain_text)) {
    format_ = RowFormat::fasttext;
  } else if (by_suffix) {
    format_ = *by_suffix;
  } else if (given.first_line_decides) {
    format_ = format_by_content(first_line(), true, given.delimiter, given.named_columns());
  } else {
    format_ = format_by_content(text, last, given.delimiter, given.named_columns());
  }
  const bool is_text = format_ == RowFormat::tsv || format_ == RowFormat::plain_text;
  if (is_text && given.delimiter != '\0') format_ = RowFormat::csv;
  if (format_ == RowFormat::plain_text && by_suffix) {
    unused_delimiter_ = table_delimiter(text, last).value_or('\0');
  }
}

// For a pipe, this sees only the bytes in memory.
void RowStream::find_quotes() {
  if (options_.rows.format || options_.rows.first_line_decides) return;
  std::string_view seen = window_.bytes();
  if (!window_.last()) seen = seen.substr(0, seen.rfind('\n') + 1);
  const bool is_all = window_.last() || !options_.open;
  if (!has_quoted_values(is_all ? [seen] { return ByteWindow(seen); } : options_.open)) return;
  format_ = RowFormat::csv;
  delimiter_ = '\t';
  has_quoted_tabs_ = true;
}

std::string_view RowStream::first_line() {
  size_t end;
  while ((end = window_.bytes().find_first_of("\r\n")) == std::string_view::npos &&
         !window_.last() && window_.bytes().size() <= kMostRowBytes) {
    window_.more();
  }
  // Includes the line end, which a line "sep=;" needs.
  return window_.bytes().substr(0, end == std::string_view::npos ? end : end + 1);
}

char RowStream::take_delimiter_line() {
  constexpr std::string_view mark = "sep=";
  constexpr size_t most = mark.size() + 3;  // the character, CR LF
  while (window_.bytes().substr(0, mark.size()) == mark.substr(0, window_.bytes().size()) &&
         window_.bytes().size() < most && !window_.last()) {
    window_.more();
  }
  size_t size = 0;
  const char delimiter = delimiter_line(window_.bytes(), size);
  if (delimiter == '\0') return delimiter;
  window_.drop(size);
  ++next_line_;
  return delimiter;
}

void RowStream::find_delimiter() {
  delimiter_ = take_delimiter_line();
  if (options_.rows.delimiter != '\0') delimiter_ = options_.rows.delimiter;
  while (delimiter_ == '\0') {
    const std::string_view text = window_.bytes().substr(0, kMostRowBytes + 1);
    const bool last = window_.last() && text.size() == window_.bytes().size();
    delimiter_ = detect_delimiter(text, last).value_or('\0');
    if (delimiter_ == '\0' && text.size() > kMostRowBytes) delimiter_ = ',';
    if (delimiter_ == '\0') window_.more();
  }
}

void RowStream::say_dialect() const {
  if (has_quoted_tabs_) {
    log(name_, ": its values are quoted as spreadsheets write them; the quotes are left out");
  } else if (format_ == RowFormat::csv && delimiter_ != ',') {
    log(name_, ": its values are between ", plural_of_delimiter(delimiter_));
  } else if (format_ == RowFormat::fasttext) {
    log(name_, ": is read as fastText's lines, a text and ", kFasttextLabel, "NAME");
  } else if (unused_delimiter_ != '\0') {
    warn(name_, ": is read as one text a line and looks like a table; --delimiter ",
         word_for_delimiter(unused_delimiter_), " reads its columns");
  }
  const auto missing = std::count(places_.begin(), places_.end(), kMissing);
  if (missing > 0) {
    log(name_, ": lacks ", counted(missing, "column"), " of ", input_name(options_.first_file),
        " that nothing reads; ", missing == 1 ? "its values are" : "their values are", " empty");
  }
}

// Returns the row's values as column names.
std::vector<std::string> RowStream::header_names() const {
  std::vector<std::string> names;
  for (std::string_view value : values_) names.emplace_back(trim(value));
  return names;
}

void RowStream::read_columns() {
  if (keys_name_columns() && !options_.columns.empty()) {
    columns_ = options_.columns;
  } else {
    std::vector<std::string> names = own_columns();
    require_distinct(names);
    width_ = names.size();
    if (keys_name_columns()) add_optional(names);
    if (options_.columns.empty() || names == options_.columns) {
      columns_ = std::move(names);
    } else {
      join(names);
    }
  }
  if (!keys_name_columns()) return;
  width_ = columns_.size();
  for (const std::string& column : columns_) kinds_.push_back(kind_of(column));
}

// The first object may lack what a later one has; the text in memory shows whether one has it.
void RowStream::add_optional(std::vector<std::string>& names) const {
  for (const std::string& column : options_.rows.optional_columns) {
    if (std::find(names.begin(), names.end(), column) != names.end()) continue;
    const std::string key = concat('"', column, '"');
    if (window_.bytes().find(key) != std::string_view::npos) names.push_back(column);
  }
}

// If the named text column is missing and there is only one other column, that one is the text.
JsonColumn RowStream::kind_of(const std::string& column) const {
  const RowOptions& rows = options_.rows;
  const std::vector<std::string>& named = rows.named_columns();
  if (!rows.reads(column)) {
    const bool has_text =
        !named.empty() && std::find(columns_.begin(), columns_.end(), named[0]) != columns_.end();
    return has_text ? JsonColumn::unread_any : JsonColumn::unread;
  }
  if (rows.may_lack(column)) return JsonColumn::optional;
  if (column != rows.label_column) return JsonColumn::value;
  return rows.label_lists ? JsonColumn::labels : JsonColumn::label;
}

// Returns the column names in this input.
std::vector<std::string> RowStream::own_columns() {
  if (format_ == RowFormat::plain_text) return {"text"};
  if (format_ == RowFormat::fasttext) {
    const std::string& label = options_.rows.label_column;
    return {"text", label.empty() ? "label" : label};
  }
  if (!keys_name_columns()) require_header_above();
  RowScan row;
  for (;;) {
    if (!find_row(row)) {
      if (!options_.rows.may_be_empty) throw data_error(name_, ": is empty");
      const std::vector<std::string>& named = options_.rows.named_columns();
      return named.empty() ? std::vector<std::string>{"text"} : named;
    }
    const std::string problem = problem_in(row);
    if (!problem.empty()) throw data_error(problem);
    std::vector<std::string> names = keys_name_columns() ? columns_ : header_names();
    note_blank(row);
    if (names.empty() || !keys_name_columns()) step_over(row);
    if (!names.empty()) return names;
  }
}

// Bank exports may have lines about the account above the header.
void RowStream::require_header_above() {
  if (options_.rows.first_line_decides) return;
  see(kShapeBytes);
  const std::string_view text = window_.bytes().substr(0, kShapeBytes);
  const bool last = window_.last() && text.size() == window_.bytes().size();
  const char delimiter = format_ == RowFormat::tsv || has_quoted_tabs_ ? '\t'
                         : options_.rows.delimiter != '\0'             ? options_.rows.delimiter
                                                                       : '\0';
  const auto header = header_below(text, last, delimiter, options_.rows.named_columns());
  if (!header) return;
  const uint32_t line = next_line_ - 1 + header->line;
  // A named column in that line is proof; otherwise the rows' widths are the reason.
  std::string reason = concat("most rows below the first line have more values; line ", line,
                              " looks like the header");
  for (const std::string& column : options_.rows.named_columns()) {
    if (std::find(header->names.begin(), header->names.end(), column) == header->names.end()) {
      continue;
    }
    reason =
        concat("no column ", in_quotes(column), " in the first line, and line ", line, " has it");
    break;
  }
  throw data_error(name_, ": ", reason, ": if that is the header (", listed_columns(header->names),
                   "), leave out what is before it", tail_command(path_, text, line));
}

// Columns that are not read may share a name, and so may unnamed ones (after a trailing comma).
void RowStream::require_distinct(const std::vector<std::string>& names) const {
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i].empty() || sorted[i] != sorted[i - 1]) continue;
    if (!keys_name_columns() && !options_.rows.reads(sorted[i])) continue;
    throw data_error(name_, ":", line_, ": two columns are named ", in_quotes(sorted[i]));
  }
}

// Finds each column of the first file among `names`. The first of two equal names goes to the first
// column of that name, the second to the second.
void RowStream::join(const std::vector<std::string>& names) {
  columns_ = options_.columns;
  std::unordered_map<std::string_view, std::vector<size_t>> places;
  for (size_t i = names.size(); i-- > 0;) places[names[i]].push_back(i);
  for (const std::string& column : columns_) {
    const auto found = places.find(column);
    if (found != places.end() && !found->second.empty()) {
      places_.push_back(found->second.back());
      found->second.pop_back();
    } else if (!column.empty() && options_.rows.reads(column)) {
      throw data_error(name_, ": has no column ", in_quotes(column), ", which ",
                       input_name(options_.first_file),
                       " has; its columns are: ", listed_columns(names));
    } else {
      places_.push_back(kMissing);
    }
  }
}

}  // namespace finetune
