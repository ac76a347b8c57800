// Files of rows: CSV (RFC 4180), TSV, JSON Lines, JSON and plain text. Every value is a string, so
// NA, null and 007 survive. Errors are Error(data) and name the file, line and column.
// data/source/byte_source.h unpacks and decodes the bytes first.
//
//   CSV         values separated by comma, semicolon, tab or bar; rows end in LF, CRLF or CR;
//               quoted values may hold delimiters, line ends and doubled quotes
//   TSV         values separated by tabs, unquoted. A file whose values are consistently quoted is
//               read as CSV (tab_quotes.h)
//   JSON Lines  the keys of the first row are the columns. Strings are unescaped, numbers, true and
//               false are as written, null is empty. Other keys of later rows are ignored
//   JSON        one array of such objects
//   plain text  one column "text", one row per line including empty lines: row n is line n
//
// White space around column names is removed. CSV and TSV skip blank lines, except in a file with a
// single column, where they are rows. kMostRowBytes and kMostColumns (row_grammar.h) limit a row.
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

// The rows of several files, one file after the other, in memory. The first file defines the
// columns; later files are joined by column name. A column that a later file lacks is an error if
// RowOptions name it, else its values are empty. Values are views into memory that the table owns;
// they stay valid when the table is moved.
class Table {
 public:
  using Row = finetune::Row;

  const std::vector<std::string>& columns() const { return columns_; }
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<fs::path>& files() const { return files_; }
  // Returns the index of a column. Error(data) names the file, the column and the existing columns.
  size_t column(std::string_view name) const;
  bool has_column(std::string_view name) const;
  std::string where(const Row& row) const;  // "train.csv:118"
  int64_t skipped_rows() const { return skipped_rows_; }
  const std::string& first_problem() const { return first_problem_; }  // of the skipped rows
  void set_value(size_t row, size_t column, std::string_view value);   // keeps a copy
  // Copies the values of these rows and drops all other rows and the files, whose contents may
  // change later. Error(data) if a file was truncated since it was read.
  void keep(const std::vector<uint32_t>& rows);
  void check_intact() const;  // throws the same error

 private:
  friend class TableReader;
  std::vector<std::string> columns_;
  std::vector<Row> rows_;
  std::vector<fs::path> files_;
  std::vector<std::unique_ptr<std::string_view[]>> values_;  // the memory behind the rows' spans
  std::vector<MappedFile> maps_;
  TextArena arena_;  // values that had to be unescaped
  int64_t skipped_rows_ = 0;
  std::string first_problem_;
};

// Reads all files. A row with a wrong number of values, an unclosed quote, invalid UTF-8 or (JSON
// Lines) a missing key is an error; options.skip_bad_rows counts and drops such rows instead.
// `limit` > 0 stops after that number of rows. A file without rows is an error.
Table read_table(const std::vector<InputFile>& files, const RowOptions& options = {},
                 int64_t limit = 0);

// Reads the same rows one by one, in memory that does not grow with the input (at most one row of
// up to 64 MiB, and a block). "-" is standard input. An input without rows is allowed, but CSV, TSV
// and JSON Lines must at least have columns.
class RowReader {
 public:
  explicit RowReader(const fs::path& file, const RowOptions& options = {});
  ~RowReader();
  RowReader(RowReader&&) noexcept;
  RowReader& operator=(RowReader&&) noexcept;

  bool next(Row& row);  // false at the end; its values live until the next call
  // whether another row can be read without waiting; invalidates the last row's values
  bool ready();
  RowFormat format() const;
  const std::vector<std::string>& columns() const;
  size_t column(std::string_view name) const;  // see Table::column
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
