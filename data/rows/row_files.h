// The rows of several files, one after the other, as often as needed. Columns as in Table.
// Memory does not grow with them (RowReader's limits). A pipe is copied to a nameless file in
// $TMPDIR first, since it can be read once only.
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

  // False at the end; the row's values live until the next call. The errors are read_table's: a
  // file without rows, or without a column that is read, is one.
  bool next(Row& row);
  void rewind();  // next() begins again with the first row

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
  std::unique_ptr<Open> open_;  // the file that is being read
  size_t said_ = 0;             // files whose dialect is in the log
  int64_t skipped_before_ = 0;  // in the files before it
};

}  // namespace finetune
