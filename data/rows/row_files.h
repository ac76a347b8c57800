// Streams the rows of several files, one after the other, as often as needed. Columns are joined as
// in Table, memory is bounded as in RowReader. A pipe is first copied to a file in $TMPDIR.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/input_file.h"
#include "data/rows/records.h"

namespace finetune {

class RowFiles {
 public:
  // Opens the first file and reads its columns.
  RowFiles(const std::vector<InputFile>& files, const RowOptions& options);
  ~RowFiles();

  // Returns false at the end. The row's values live until the next call. Throws the errors of
  // read_table, such as for a file without rows or without a required column.
  bool next(Row& row);
  void rewind();  // next() returns the first row again

  const std::vector<std::string>& columns() const { return columns_; }
  const fs::path& first_file() const { return inputs_.front().name; }
  std::string where(const Row& row) const;  // "test.csv:118"
  int64_t skipped_rows() const;             // since the first row

 private:
  struct Open;
  void open(size_t file);

  std::vector<InputFile> inputs_;
  RowOptions options_;
  std::vector<std::string> columns_;
  std::unique_ptr<Open> open_;  // the current file
  size_t said_ = 0;             // number of files whose dialect was logged
  int64_t skipped_before_ = 0;  // in the files before the current one
};

}  // namespace finetune
