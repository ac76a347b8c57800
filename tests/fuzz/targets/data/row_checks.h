// Properties of files of rows.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/rows/csv_line.h"
#include "data/rows/records.h"
#include "fuzz/target.h"

namespace finetune::fuzz {

struct ReadRow {
  std::vector<std::string> values;
  uint32_t line = 0;
  friend bool operator==(const ReadRow&, const ReadRow&) = default;
};

// A reader's result: rows, or an error.
struct ReadRows {
  std::vector<std::string> columns;
  std::vector<ReadRow> rows;
  int64_t skipped = 0;
  std::string fault;
};

inline ReadRow copy_of(const Row& row, size_t columns) {
  require(row.values.size() == columns, "a row of ", row.values.size(), " values for ", columns,
          " columns");
  require(row.line > 0, "a row without a line");
  for (std::string_view value : row.values) {
    require(invalid_utf8(value) == std::string_view::npos, "a value is not UTF-8");
  }
  return {{row.values.begin(), row.values.end()}, row.line};
}

inline ReadRows rows_of_table(const fs::path& path, const RowOptions& options) {
  ReadRows out;
  try {
    const Table table = read_table({InputFile(path)}, options);
    out.columns = table.columns();
    for (const Row& row : table.rows()) out.rows.push_back(copy_of(row, out.columns.size()));
    out.skipped = table.skipped_rows();
    require(!out.rows.empty(), "a table without rows");
  } catch (const Error& error) {
    require(error.code() == ExitCode::data || error.code() == ExitCode::usage, error.what());
    out.fault = error.what();
  }
  return out;
}

inline ReadRows rows_of_reader(const fs::path& path, const RowOptions& options) {
  ReadRows out;
  try {
    RowReader reader(path, options);
    out.columns = reader.columns();
    uint32_t line = 0;
    for (Row row; reader.next(row); line = row.line) {
      out.rows.push_back(copy_of(row, out.columns.size()));
      require(row.line >= line, "line ", row.line, " comes behind line ", line);
    }
    out.skipped = reader.skipped_rows();
  } catch (const Error& error) {
    require(error.code() == ExitCode::data || error.code() == ExitCode::usage, error.what());
    out.fault = error.what();
  }
  return out;
}

// predictions.csv contains rows: written as CSV they must read back unchanged.
inline void check_written(const ReadRows& read) {
  if (read.columns.size() < 2) return;  // one empty value would be a blank line, not a row
  std::string text;
  std::vector<std::string> names;
  for (size_t i = 0; i < read.columns.size(); ++i) names.push_back(concat("column ", i));
  append_csv_row(names, text);
  for (const ReadRow& row : read.rows) append_csv_row(row.values, text);
  const RowOptions options{.delimiter = ',', .format = RowFormat::csv};
  const ReadRows again = rows_of_table(scratch_file("again.csv", text), options);
  require(again.rows.size() == read.rows.size(), again.rows.size(), " rows of ", read.rows.size(),
          " come back from CSV ", again.fault);
  for (size_t i = 0; i < read.rows.size(); ++i) {
    require(again.rows[i].values == read.rows[i].values, "row ", i, " comes back changed from CSV");
  }
}

// Both ways of reading rows give the same result.
inline void check_rows(const fs::path& path, const RowOptions& options) {
  const ReadRows table = rows_of_table(path, options), reader = rows_of_reader(path, options);
  if (table.fault.empty()) {
    require(reader.fault.empty(), "a table of ", table.rows.size(), " rows, but: ", reader.fault);
    require(table.columns == reader.columns, "two lists of columns");
    require(table.rows == reader.rows, "two lists of rows");
    require(table.skipped == reader.skipped, table.skipped, " and ", reader.skipped, " bad rows");
    check_written(table);
    return;
  }
  require(!reader.fault.empty() || reader.rows.empty(), reader.rows.size(),
          " rows, but: ", table.fault);
}

}  // namespace finetune::fuzz
