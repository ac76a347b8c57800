// Files of rows: CSV (RFC 4180), TSV and JSON Lines. Every value is a string: NA, null and 007
// survive. Errors are Error(data) and name the file, line and column.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/files.h"

namespace finetune {

enum class RowFormat { csv, tsv, jsonl, plain_text };

// By suffix (.csv .tsv .jsonl .ndjson .json .txt), else by content.
RowFormat detect_row_format(const fs::path& path, std::string_view beginning);

// Columns of a set of files with equal columns, joined in order. Values are views into memory that
// the table owns.
class Table {
 public:
  struct Row {
    std::vector<std::string_view> values;  // one for each column
    uint32_t file = 0;                     // index into files()
    uint32_t line = 0;                     // 1-based line where the row begins
  };

  const std::vector<std::string>& columns() const { return columns_; }
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<fs::path>& files() const { return files_; }
  // Index of a column, or Error(data) naming the file, the column and the columns there are.
  size_t column(std::string_view name) const;
  bool has_column(std::string_view name) const;
  std::string where(const Row& row) const;  // "train.csv:118"
  int64_t skipped_rows() const { return skipped_rows_; }

 private:
  friend class TableReader;
  std::vector<std::string> columns_;
  std::vector<Row> rows_;
  std::vector<fs::path> files_;
  std::vector<MappedFile> maps_;
  std::deque<std::string> arena_;  // values that had to be unescaped
  int64_t skipped_rows_ = 0;
};

// Reads all files. A ragged row, an unclosed quote, invalid UTF-8 or (JSON Lines) a missing key is
// an error, or with `skip_bad_rows` counted and dropped. `limit` > 0 stops after so many rows.
// plain_text: one column "text", one row per line.
Table read_table(const std::vector<fs::path>& files, bool skip_bad_rows, int64_t limit);

}  // namespace finetune
