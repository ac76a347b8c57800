// Files of rows: CSV (RFC 4180), TSV, JSON Lines, JSON and plain text. Every value is a string: NA,
// null and 007 survive. Errors are Error(data) and name the file, line and column.
// data/source/byte_source.h unpacks and decodes the bytes before.
//
//   CSV         between values a comma, semicolon, tab or bar; LF, CRLF or CR; quoted values may
//               hold these, line ends and doubled quotes
//   TSV         values between tabs as they are. A file whose values are consistently quoted is
//               read as CSV (tab_quotes.h)
//   JSON Lines  the keys of the first row are the columns. Strings are unescaped, numbers, true and
//               false are as written, null is empty. Other keys of later rows are ignored
//   JSON        one array of such objects
//   plain text  one column "text", one row per line, empty ones too: row n is line n
//
// White space around the names of columns is removed. In CSV and TSV blank lines are skipped; below
// the name of a single column they are rows. kMostRowBytes and kMostColumns (row_grammar.h) limit a
// row.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/files.h"
#include "data/input_file.h"
#include "data/rows/row_options.h"
#include "data/text_arena.h"

namespace finetune {

struct Row {
  std::span<const std::string_view> values;  // one for each column
  uint32_t file = 0;                         // index into files()
  uint32_t line = 0;                         // 1-based line where the row begins
};

// The rows of several files, one after the other, in memory. They have the columns of the first
// file; the columns of later files are joined by name, and missing ones that RowOptions do not name
// are empty. Values are views into memory that the table owns; they stay valid when the table is
// moved.
class Table {
 public:
  using Row = finetune::Row;

  const std::vector<std::string>& columns() const { return columns_; }
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<fs::path>& files() const { return files_; }
  // Index of a column, or Error(data) naming the file, the column and the columns there are.
  size_t column(std::string_view name) const;
  bool has_column(std::string_view name) const;
  std::string where(const Row& row) const;  // "train.csv:118"
  int64_t skipped_rows() const { return skipped_rows_; }
  const std::string& first_problem() const { return first_problem_; }  // of the skipped rows
  void set_value(size_t row, size_t column, std::string_view value);   // keeps a copy
  // Copies the values of these rows and lets go of all others and of the files, whose values can
  // change or vanish. Error(data) if they have been cut since they were read.
  void keep(const std::vector<uint32_t>& rows);
  void check_intact() const;  // that error alone

 private:
  friend class TableReader;
  std::vector<std::string> columns_;
  std::vector<Row> rows_;
  std::vector<fs::path> files_;
  std::vector<std::unique_ptr<std::string_view[]>> values_;  // what the rows' spans point into
  std::vector<MappedFile> maps_;
  TextArena arena_;  // values that had to be unescaped
  int64_t skipped_rows_ = 0;
  std::string first_problem_;
};

// Reads all files. A ragged row, a quote that is never closed, invalid UTF-8 or (JSON Lines) a
// missing key is an error, or with options.skip_bad_rows counted and dropped. `limit` > 0 stops
// after so many rows. A file without a row is an error.
Table read_table(const std::vector<InputFile>& files, const RowOptions& options = {},
                 int64_t limit = 0);

// The same rows one by one, in memory that does not grow with the input (at most one row, of up to
// 64 MiB, and a block). "-" is the standard input. An input without rows just ends, but a CSV, TSV
// or JSON Lines input without even columns is an error.
class RowReader {
 public:
  explicit RowReader(const fs::path& file, const RowOptions& options = {});
  ~RowReader();
  RowReader(RowReader&&) noexcept;
  RowReader& operator=(RowReader&&) noexcept;

  bool next(Row& row);  // false at the end; its values live until the next call
  bool ready();         // whether another row is there without waiting; ends the last row's values
  RowFormat format() const;
  const std::vector<std::string>& columns() const;
  size_t column(std::string_view name) const;  // as Table::column
  bool has_column(std::string_view name) const;
  std::string where(const Row& row) const;
  int64_t skipped_rows() const;
  const std::string& first_problem() const;  // of the skipped rows
  double share() const;                      // ByteSource::share()

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace finetune
