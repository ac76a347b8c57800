// Rows of text and their labels in a nameless file in $TMPDIR, for another process to learn from.
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
  // Error(model) if the file cannot be made, and later if it cannot be written.
  TextRows();
  explicit TextRows(int descriptor);  // of such a file

  // Labels by id, ascending; or of regression the number.
  void add(std::string_view text, std::span<const int32_t> labels, double target = 0);
  void flush();

  int64_t size() const { return size_; }
  int descriptor() const { return file_.descriptor(); }
  // The number of rows that these were chosen from.
  int64_t of = 0;
  ColumnCounts columns;  // that follow each text

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

// Reads the file of a TextRows from its beginning, without moving the descriptor's own position.
class TextRowReader {
 public:
  explicit TextRowReader(int descriptor) : descriptor_(descriptor) {}
  bool next(TextRow& row);  // false at the end; Error(model) if it cannot be read

 private:
  bool take(void* out, size_t size);  // false where nothing is left

  int descriptor_;
  int64_t offset_ = 0;  // of the file, behind the buffer
  std::string buffer_;
  size_t at_ = 0;
};

// How the numbers beside the texts are written, by all rows of such a file: without their means.
std::vector<NumberScale> column_scales(int descriptor, const ColumnCounts& counts);

}  // namespace finetune
