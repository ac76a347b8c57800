// Shared by tests of rows: rows as texts, read whole and row by row.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "data/rows/records.h"
#include "data_fault.h"

namespace finetune::test {

using Cells = std::vector<std::vector<std::string>>;
using Lines = std::vector<uint32_t>;

inline Cells cells(const Table& table) {
  Cells out;
  for (const Row& row : table.rows()) out.emplace_back(row.values.begin(), row.values.end());
  return out;
}

inline Lines lines(const Table& table) {
  Lines out;
  for (const Row& row : table.rows()) out.push_back(row.line);
  return out;
}

inline Cells streamed(const fs::path& path, bool skip_bad_rows = false) {
  RowReader reader(path, {.skip_bad_rows = skip_bad_rows});
  Cells out;
  for (Row row; reader.next(row);) out.emplace_back(row.values.begin(), row.values.end());
  return out;
}

struct RowsFixture {
  TemporaryDirectory scratch;

  // Reads `text` as a file `name`, whole and row by row; both must agree.
  Table read(const std::string& name, std::string_view text, bool skip = false) {
    fs::path path = scratch.write(name, text);
    Table table = read_table({path}, {.skip_bad_rows = skip});
    CHECK(streamed(path, skip) == cells(table));
    return table;
  }
  std::string fault(const std::string& name, std::string_view text) {
    fs::path path = scratch.write(name, text);
    std::string whole = data_fault(scratch, [&] { read_table({path}); });
    CHECK(data_fault(scratch, [&] { streamed(path); }) == whole);
    return whole;
  }
};

}  // namespace finetune::test
