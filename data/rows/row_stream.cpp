// Finds rows in a byte window: format by content, encoding, columns, bad rows.
#include "data/rows/row_stream.h"

#include <simdjson.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/text/printable.h"

namespace finetune {
namespace {

constexpr size_t kMostRowBytes = 64 << 20;
constexpr std::string_view kSkipHint = "; --skip-bad-rows drops such rows";

// UTF-16 by its byte order mark, or by the zero bytes of Latin text: every other byte.
bool looks_like_utf16(std::string_view text) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) return true;
  text = text.substr(0, 1024);
  size_t zeros[2] = {0, 0};
  for (size_t i = 0; i < text.size(); ++i) zeros[i % 2] += text[i] == '\0';
  size_t more = std::max(zeros[0], zeros[1]), fewer = std::min(zeros[0], zeros[1]);
  return text.size() >= 4 && more * 4 >= text.size() && fewer * 4 <= more;
}

// True if the first lines, read so, all have equally many values, more than one.
bool looks_like(RowFormat format, std::string_view beginning) {
  TextArena arena;
  Values values;
  size_t width = 0;
  for (int lines = 0; lines < 5 && !beginning.empty();) {
    RowScan scan = format == RowFormat::csv ? scan_csv(beginning, false, values, arena)
                                            : scan_tsv(beginning, false, values);
    if (scan.state == RowScan::State::incomplete) break;
    if (scan.state == RowScan::State::bad) return false;
    beginning.remove_prefix(scan.size);
    if (values.empty()) continue;
    if (values.size() == 1 || (width && values.size() != width)) return false;
    width = values.size();
    ++lines;
  }
  return width > 1;
}

}  // namespace

RowFormat detect_row_format(const fs::path& path, std::string_view beginning) {
  if (path == "-") return RowFormat::plain_text;
  const std::string name = path.string();
  constexpr std::pair<std::string_view, RowFormat> suffixes[] = {
      {".csv", RowFormat::csv},      {".tsv", RowFormat::tsv},    {".jsonl", RowFormat::jsonl},
      {".ndjson", RowFormat::jsonl}, {".json", RowFormat::jsonl}, {".txt", RowFormat::plain_text}};
  for (const auto& [suffix, format] : suffixes) {
    if (ends_with_ignoring_case(name, suffix)) return format;
  }
  if (trim(beginning).starts_with('{')) return RowFormat::jsonl;
  if (looks_like(RowFormat::tsv, beginning)) return RowFormat::tsv;
  if (looks_like(RowFormat::csv, beginning)) return RowFormat::csv;
  return RowFormat::plain_text;
}

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
  check_encoding();
  format_ = options_.format ? *options_.format : detect_row_format(path, window_.bytes());
  read_columns();
  in_header_ = false;
}

void RowStream::check_encoding() {
  if (looks_like_utf16(window_.bytes())) {
    throw data_error(name_, ": looks like UTF-16; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)");
  }
  if (window_.bytes().starts_with("\xEF\xBB\xBF")) window_.drop(3);
}

void RowStream::read_columns() {
  if (format_ == RowFormat::plain_text) {
    columns_ = {"text"};
    return;
  }
  if (format_ == RowFormat::jsonl && !options_.columns.empty()) {
    columns_ = options_.columns;
    return;
  }
  RowScan row;
  do {
    if (!find_row(row)) throw data_error(name_, ": is empty");
    std::string problem = problem_in(row);
    if (!problem.empty()) throw data_error(problem);
    if (format_ != RowFormat::jsonl) columns_.assign(values_.begin(), values_.end());
    if (columns_.empty() || format_ != RowFormat::jsonl) step_over(row);
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
      return scan_csv(window_.bytes(), window_.last(), values_, arena_);
    case RowFormat::tsv:
      return scan_tsv(window_.bytes(), window_.last(), values_);
    case RowFormat::plain_text:
      return scan_plain_text(window_.bytes(), window_.last(), values_);
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
    return concat(name_, ":", line_ + std::count(before.begin(), before.end(), '\n'), ": byte ",
                  byte, " at byte ", at - (before.rfind('\n') + 1) + 1,
                  " of the line is not UTF-8; convert the file (iconv -f WINDOWS-1252 -t UTF-8)");
  }
  if (std::memchr(bytes.data(), '\0', bytes.size())) {
    return concat(name_, ":", line_, ": a NUL byte; this is not a text file");
  }
  if (!in_header_ && !values_.empty() && values_.size() != columns_.size()) {
    return concat(name_, ":", line_, ": ", columns_.size(), " values are expected (",
                  listed_columns(columns_), "), found: ", values_.size(),
                  format_ == RowFormat::csv && values_.size() > columns_.size()
                      ? "; a value with a comma needs quotes"
                      : "");
  }
  return {};
}

void RowStream::step_over(const RowScan& row) {
  window_.drop(row.size);
  next_line_ += row.lines;
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

bool RowStream::next() {
  RowScan row;
  while (find_row(row)) {
    std::string problem = problem_in(row);
    if (problem.empty()) {
      step_over(row);
      if (!values_.empty()) return true;
      continue;
    }
    if (!options_.skip_bad_rows) throw data_error(problem, kSkipHint);
    if (skipped_rows_++ == 0) first_problem_ = std::move(problem);
    if (row.size > 0)
      step_over(row);
    else
      step_over_line();
  }
  return false;
}

}  // namespace finetune
