// Rows of text and labels in an unnamed file in $TMPDIR, to train on in another process.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/temporary_name.h"
#include "tasks/classification/side_columns/side_columns.h"

namespace finetune {

// Numbers are in this machine's byte order: the file never leaves the machine.
class TextRows {
 public:
  // Error(model) if the file cannot be created, and later if it cannot be written.
  TextRows();
  explicit TextRows(int descriptor);  // an existing file

  // Labels by id, ascending; for regression, the number.
  void add(std::string_view text, std::span<const int32_t> labels, double target = 0);
  void flush();

  int64_t size() const { return size_; }
  int descriptor() const { return file_.descriptor(); }
  // The number of rows from which these were chosen.
  int64_t of = 0;
  ColumnCounts columns;  // columns after each text

 private:
  NamelessFile file_;
  std::string buffer_;
  int64_t size_ = 0;
};

struct TextRow {
  std::string text;
  std::vector<int32_t> labels;
  double target = 0;
};

// Reads the file of a TextRows from its beginning, without changing the descriptor's position.
class TextRowReader {
 public:
  explicit TextRowReader(int descriptor) : descriptor_(descriptor) {}
  bool next(TextRow& row);  // false at the end; Error(model) if it cannot be read

 private:
  bool take(void* out, size_t size);  // false at the end

  int descriptor_;
  int64_t offset_ = 0;  // in the file, after the buffer
  std::string buffer_;
  size_t at_ = 0;
};

// Finds how numbers beside the texts are written, from all rows of a file. Sets no means.
std::vector<NumberScale> column_scales(int descriptor, const ColumnCounts& counts);

}  // namespace finetune
