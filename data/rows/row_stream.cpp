// Finds the rows in a byte window: complete, bad and blank ones.
#include "data/rows/row_stream.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/option_advice.h"
#include "core/text/counted.h"
#include "core/text/printable.h"
#include "core/text/utf8.h"

namespace finetune {
namespace {

constexpr size_t kMostLineBytes = 4 * kMostRowBytes;  // skipped as one bad row
constexpr int64_t kMostBlankLines = 1'000'000;        // consecutive

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

// Looks at no more bytes than the longest row, even if the whole file is in memory.
RowScan RowStream::scan() {
  if (options_.recycle) arena_.clear();
  const std::string_view text = window_.bytes().substr(0, kMostRowBytes + 1);
  const bool last = window_.last() && text.size() == window_.bytes().size();
  switch (format_) {
    case RowFormat::csv:
      return scan_csv(text, last, delimiter_, values_, arena_);
    case RowFormat::tsv:
      return scan_tsv(text, last, values_);
    case RowFormat::plain_text:
      return scan_plain_text(text, last, values_);
    case RowFormat::fasttext:
      return scan_fasttext(text, last, values_, arena_);
    case RowFormat::json:
      if (in_header_) return scan_json_element_keys(text, last, columns_);
      return scan_json_element(text, last, in_first_element_, columns_, values_, arena_, kinds_);
    case RowFormat::jsonl:
      break;
  }
  if (in_header_) return scan_json_keys(text, last, columns_);
  return scan_json_line(text, last, columns_, values_, arena_, kinds_);
}

// Scans the next row, reading on until it is complete. Returns false at the end of the input.
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

// Returns why the row is unusable, or "". A blank line is not a problem.
std::string RowStream::problem_in(const RowScan& row) const {
  if (row.state == RowScan::State::bad) {
    return concat(name_, ":", line_ + row.problem_line, ": ", row.problem);
  }
  std::string_view bytes = window_.bytes().substr(0, row.size);
  if (!utf8::is_valid(bytes)) {
    size_t at = invalid_utf8(bytes);
    std::string_view before = bytes.substr(0, at);
    char byte[8];
    std::snprintf(byte, sizeof byte, "0x%02X", static_cast<unsigned char>(bytes[at]));
    return concat(name_, ":", line_ + std::count(before.begin(), before.end(), '\n'), ": byte ",
                  byte, " at byte ", at - (before.rfind('\n') + 1) + 1, " of the line is not UTF-8",
                  option_advice("; --encoding names the file's encoding, such as windows-1252"));
  }
  if (std::memchr(bytes.data(), '\0', bytes.size())) {
    return concat(name_, ":", line_, ": a NUL byte; this is not a text file");
  }
  if (!in_header_ && !values_.empty() && values_.size() != width_) {
    return concat(name_, ":", line_, ": ",
                  counted(width_, "value is expected", "values are expected"), " (",
                  listed_columns(columns_), "), found: ", values_.size(), advice_for_width());
  }
  return {};
}

std::string RowStream::advice_for_width() const {
  if (format_ != RowFormat::csv || values_.size() < width_) return {};
  if (delimiter_ == ',') {
    return concat(width_ == 1
                      ? option_advice("; --delimiter names what is between values, if no commas")
                      : "",
                  "; a value with a comma needs quotes");
  }
  return concat("; its values are between ", plural_of_delimiter(delimiter_),
                option_advice(" (--delimiter)"),
                ", and one that holds such a character needs quotes");
}

// A file with only line ends would take forever to read, and too much memory as rows.
void RowStream::note_blank(const RowScan& row) {
  const bool is_blank = row.lines == 1 && row.size <= 2;
  blank_lines_ = is_blank && (values_.empty() || values_[0].empty()) ? blank_lines_ + 1 : 0;
  if (blank_lines_ <= kMostBlankLines) return;
  throw data_error(name_, ":", line_, ": more than ", kMostBlankLines,
                   " blank lines in a row; is this the right file?");
}

void RowStream::join_values() {
  joined_.clear();
  for (const size_t place : places_) {
    joined_.push_back(place == kMissing ? std::string_view("") : values_[place]);
  }
}

void RowStream::step_over(const RowScan& row) {
  window_.drop(row.size);
  next_line_ += row.lines;
  in_first_element_ = false;
}

// Skips only one line of a row whose end is unknown: a stray quote may hide good rows below.
void RowStream::step_over_line() {
  for (size_t left = kMostLineBytes;;) {
    size_t end = window_.bytes().substr(0, left).find_first_of("\r\n");
    bool undecided = end != std::string_view::npos && window_.bytes()[end] == '\r' &&
                     end + 1 == window_.bytes().size() && !window_.last();
    if (end != std::string_view::npos && !undecided) {
      window_.drop(end + (window_.bytes().substr(end, 2) == "\r\n" ? 2 : 1));
      break;
    }
    const size_t dropped = undecided ? end : std::min(left, window_.bytes().size());
    window_.drop(dropped);
    left -= dropped;
    if (left == 0) {
      throw data_error(name_, ":", line_, ": no line end in ", kMostLineBytes >> 20,
                       " MiB; this is not a text file");
    }
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
      note_blank(row);
      step_over(row);
      // In a file with one column a blank line is a row, so that outputs match inputs line by line.
      if (values_.empty() && width_ == 1 && !keys_name_columns()) values_.emplace_back("");
      if (values_.empty()) continue;
      if (!places_.empty()) join_values();
      return true;
    }
    // The next object of an array can only be found after a complete one.
    if (format_ == RowFormat::json && row.size == 0) throw data_error(problem);
    if (!options_.rows.skip_bad_rows)
      throw data_error(problem, option_advice("; --skip-bad-rows drops such rows"));
    if (skipped_rows_++ == 0) first_problem_ = std::move(problem);
    if (row.size > 0)
      step_over(row);
    else
      step_over_line();
  }
  return false;
}

}  // namespace finetune
