// Finds rows in a byte window: format by content, encoding, columns, bad rows.
#include "data/rows/row_stream.h"

#include <simdjson.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/text/counted.h"
#include "core/text/printable.h"
#include "data/source/byte_source.h"

namespace finetune {
namespace {

constexpr size_t kMostRowBytes = 64 << 20;
constexpr std::string_view kSkipHint = "; --skip-bad-rows drops such rows";

bool may_delimit(char c) {
  return c == '\t' || (std::ispunct(static_cast<unsigned char>(c)) && c != '"');
}

}  // namespace

std::string listed_columns(const std::vector<std::string>& columns) {
  constexpr size_t kMost = 20, kLongest = 60;
  std::vector<std::string> shown;
  for (size_t i = 0; i < columns.size() && i < kMost; ++i) {
    shown.push_back(printable(columns[i], kLongest));
  }
  const size_t more = columns.size() - shown.size();
  return concat(join(shown, ", "), more > 0 ? concat(" and ", more, " more") : "");
}

size_t find_column(const std::vector<std::string>& columns, std::string_view name,
                   const fs::path& file) {
  auto found = std::find(columns.begin(), columns.end(), name);
  if (found != columns.end()) return size_t(found - columns.begin());
  auto similar = closest_match(name, columns);
  throw data_error(input_name(file), ": no column ", in_quotes(name),
                   "; its columns are: ", listed_columns(columns),
                   similar ? concat(" (did you mean ", in_quotes(*similar), "?)") : std::string());
}

RowStream::RowStream(const fs::path& path, ByteWindow window, Options options, TextArena& arena)
    : name_(input_name(path)),
      window_(std::move(window)),
      options_(std::move(options)),
      arena_(arena) {
  while (window_.bytes().size() < 4 && !window_.last()) window_.more();
  if (window_.bytes().starts_with("\xEF\xBB\xBF")) window_.drop(3);
  find_format(path);
  if (format_ == RowFormat::csv) find_delimiter();
  read_columns();
  in_header_ = false;
}

void RowStream::find_format(const fs::path& path) {
  const RowOptions& given = options_.rows;
  if (given.format) {
    format_ = *given.format;
  } else if (path == "-" && !given.stdin_columns.empty()) {
    format_ = format_of_first_line();
  } else {
    format_ = detect_row_format(path, window_.bytes());
    const bool has_no_suffix = unpacked_name(path).extension().empty();
    if (format_ == RowFormat::plain_text && has_no_suffix && given.stdin_columns.size() == 1 &&
        trim(first_line()) == given.stdin_columns[0]) {
      format_ = RowFormat::csv;  // of one column, which the first rows do not tell from texts
    }
    const bool is_text = format_ == RowFormat::tsv || format_ == RowFormat::plain_text;
    if (is_text && given.delimiter != '\0') format_ = RowFormat::csv;
  }
}

std::string_view RowStream::first_line() {
  size_t end;
  while ((end = window_.bytes().find_first_of("\r\n")) == std::string_view::npos &&
         !window_.last() && window_.bytes().size() <= kMostRowBytes) {
    window_.more();
  }
  return window_.bytes().substr(0, end);
}

// What standard input is by its first line alone: whoever types the lines waits for answers.
RowFormat RowStream::format_of_first_line() {
  const std::string_view line = first_line();
  if (line.empty()) return RowFormat::plain_text;
  if (line.size() == 5 && line.starts_with("sep=") && may_delimit(line[4])) return RowFormat::csv;
  const auto has_all = [&](const std::vector<std::string>& names) {
    const std::vector<std::string>& asked = options_.rows.stdin_columns;
    return std::all_of(asked.begin(), asked.end(), [&](const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    });
  };
  std::vector<std::string> keys;
  const RowScan object = scan_json_keys(line, true, keys);
  if (object.state == RowScan::State::row && has_all(keys)) return RowFormat::jsonl;
  const char delimiter = options_.rows.delimiter != '\0' ? options_.rows.delimiter
                                                         : detect_delimiter(line, true).value();
  const RowScan header = scan_csv(line, true, delimiter, values_, arena_);
  const bool csv = header.state == RowScan::State::row && has_all(header_names());
  return csv ? RowFormat::csv : RowFormat::plain_text;
}

// A first line "sep=;" is for Excel, which writes and reads it. 0 where there is none.
char RowStream::take_delimiter_line() {
  constexpr std::string_view mark = "sep=";
  constexpr size_t most = mark.size() + 3;  // the character, CR LF
  while (window_.bytes().substr(0, mark.size()) == mark.substr(0, window_.bytes().size()) &&
         window_.bytes().size() < most && !window_.last()) {
    window_.more();
  }
  const std::string_view text = window_.bytes();
  if (!text.starts_with(mark) || text.size() < most - 1) return '\0';
  const char delimiter = text[mark.size()];
  const std::string_view rest = text.substr(mark.size() + 1);
  const size_t end = rest.starts_with("\r\n") ? 2 : rest[0] == '\n' || rest[0] == '\r' ? 1 : 0;
  if (end == 0 || !may_delimit(delimiter)) return '\0';
  window_.drop(mark.size() + 1 + end);
  ++next_line_;
  return delimiter;
}

void RowStream::find_delimiter() {
  delimiter_ = take_delimiter_line();
  if (options_.rows.delimiter != '\0') delimiter_ = options_.rows.delimiter;
  while (delimiter_ == '\0') {
    delimiter_ = detect_delimiter(window_.bytes(), window_.last()).value_or('\0');
    if (delimiter_ == '\0' && window_.bytes().size() > kMostRowBytes) delimiter_ = ',';
    if (delimiter_ == '\0') window_.more();
  }
}

void RowStream::say_dialect() const {
  if (format_ != RowFormat::csv || delimiter_ == ',') return;
  log(name_, ": its values are between ", plural_of_delimiter(delimiter_));
}

// The values of the row, as names.
std::vector<std::string> RowStream::header_names() const {
  std::vector<std::string> names;
  for (std::string_view value : values_) names.emplace_back(trim(value));
  return names;
}

void RowStream::read_columns() {
  if (format_ == RowFormat::plain_text) {
    columns_ = {"text"};
    return;
  }
  if (keys_name_columns() && !options_.columns.empty()) {
    columns_ = options_.columns;
    return;
  }
  RowScan row;
  do {
    if (!find_row(row)) throw data_error(name_, ": is empty");
    std::string problem = problem_in(row);
    if (!problem.empty()) throw data_error(problem);
    if (!keys_name_columns()) columns_ = header_names();
    if (columns_.empty() || !keys_name_columns()) step_over(row);
  } while (columns_.empty());
  std::vector<std::string> sorted = columns_;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 1; i < sorted.size(); ++i) {
    // Unnamed columns (a trailing comma) can repeat: nothing can ask for them.
    if (!sorted[i].empty() && sorted[i] == sorted[i - 1]) {
      throw data_error(name_, ":", line_, ": two columns are named ", in_quotes(sorted[i]));
    }
  }
}

RowScan RowStream::scan() {
  if (options_.recycle) arena_.clear();
  switch (format_) {
    case RowFormat::csv:
      return scan_csv(window_.bytes(), window_.last(), delimiter_, values_, arena_);
    case RowFormat::tsv:
      return scan_tsv(window_.bytes(), window_.last(), values_);
    case RowFormat::plain_text:
      return scan_plain_text(window_.bytes(), window_.last(), values_);
    case RowFormat::json:
      if (in_header_) return scan_json_element_keys(window_.bytes(), window_.last(), columns_);
      return scan_json_element(window_.bytes(), window_.last(), in_first_element_, columns_,
                               values_, arena_);
    case RowFormat::jsonl:
      break;
  }
  if (in_header_) return scan_json_keys(window_.bytes(), window_.last(), columns_);
  return scan_json_line(window_.bytes(), window_.last(), columns_, values_, arena_);
}

// Scans what is next, reading on until it is whole. False at the end of the input.
bool RowStream::find_row(RowScan& row) {
  for (;;) {
    if (window_.bytes().empty() && window_.last()) return false;
    if (!window_.bytes().empty()) {
      row = scan();
      line_ = next_line_;
      if (row.state != RowScan::State::incomplete) return true;
      if (window_.bytes().size() > kMostRowBytes) {
        row.state = RowScan::State::bad;
        row.problem = format_ == RowFormat::csv
                          ? "a row of more than 64 MiB; is a quote never closed?"
                          : "a row of more than 64 MiB";
        return true;
      }
    }
    window_.more();
  }
}

// What makes the row unusable, or nothing. A blank line is no problem.
std::string RowStream::problem_in(const RowScan& row) const {
  if (row.state == RowScan::State::bad) {
    return concat(name_, ":", line_ + row.problem_line, ": ", row.problem);
  }
  std::string_view bytes = window_.bytes().substr(0, row.size);
  if (!simdjson::validate_utf8(bytes.data(), bytes.size())) {
    size_t at = invalid_utf8(bytes);
    std::string_view before = bytes.substr(0, at);
    char byte[8];
    std::snprintf(byte, sizeof byte, "0x%02X", static_cast<unsigned char>(bytes[at]));
    return concat(
        name_, ":", line_ + std::count(before.begin(), before.end(), '\n'), ": byte ", byte,
        " at byte ", at - (before.rfind('\n') + 1) + 1,
        " of the line is not UTF-8; --encoding names the file's encoding, such as windows-1252");
  }
  if (std::memchr(bytes.data(), '\0', bytes.size())) {
    return concat(name_, ":", line_, ": a NUL byte; this is not a text file");
  }
  if (!in_header_ && !values_.empty() && values_.size() != columns_.size()) {
    return concat(name_, ":", line_, ": ",
                  counted(columns_.size(), "value is expected", "values are expected"), " (",
                  listed_columns(columns_), "), found: ", values_.size(), advice_for_width());
  }
  return {};
}

std::string RowStream::advice_for_width() const {
  if (format_ != RowFormat::csv || values_.size() < columns_.size()) return {};
  if (delimiter_ == ',') {
    return concat(
        columns_.size() == 1 ? "; --delimiter names what is between values, if no commas" : "",
        "; a value with a comma needs quotes");
  }
  return concat("; its values are between ", plural_of_delimiter(delimiter_),
                " (--delimiter), and one that holds such a character needs quotes");
}

void RowStream::step_over(const RowScan& row) {
  window_.drop(row.size);
  next_line_ += row.lines;
  in_first_element_ = false;
}

// After a row whose end is not known: a stray quote has swallowed the rows below, which are good.
void RowStream::step_over_line() {
  for (;;) {
    size_t end = window_.bytes().find_first_of("\r\n");
    bool undecided = end != std::string_view::npos && window_.bytes()[end] == '\r' &&
                     end + 1 == window_.bytes().size() && !window_.last();
    if (end != std::string_view::npos && !undecided) {
      window_.drop(end + (window_.bytes().substr(end, 2) == "\r\n" ? 2 : 1));
      break;
    }
    window_.drop(undecided ? end : window_.bytes().size());
    if (window_.last()) break;
    window_.more();
  }
  ++next_line_;
}

bool RowStream::ready() {
  return !window_.bytes().empty() && scan().state != RowScan::State::incomplete;
}

bool RowStream::next() {
  RowScan row;
  while (find_row(row)) {
    std::string problem = problem_in(row);
    if (problem.empty()) {
      step_over(row);
      if (!values_.empty()) return true;
      continue;
    }
    // Where the next object of an array begins is known after a whole one alone.
    if (format_ == RowFormat::json && row.size == 0) throw data_error(problem);
    if (!options_.rows.skip_bad_rows) throw data_error(problem, kSkipHint);
    if (skipped_rows_++ == 0) first_problem_ = std::move(problem);
    if (row.size > 0)
      step_over(row);
    else
      step_over_line();
  }
  return false;
}

}  // namespace finetune
