#include "tasks/classification/row_chunk.h"

namespace finetune {

bool RowChunk::read(RowReader& reader, int64_t max_rows, size_t max_bytes) {
  text_.clear();
  ends_.clear();
  values_.clear();
  rows_.clear();
  size_t count = 0;
  Row row;
  while (int64_t(count) < max_rows && text_.size() < max_bytes && reader.next(row)) {
    for (std::string_view value : row.values) {
      text_ += value;
      ends_.push_back(text_.size());
    }
    ++count;
  }
  if (count == 0) return false;
  size_t begin = 0;
  for (size_t end : ends_) {
    values_.push_back(std::string_view(text_).substr(begin, end - begin));
    begin = end;
  }
  size_t columns = values_.size() / count;
  for (size_t i = 0; i < count; ++i) {
    rows_.push_back(RowValues(values_).subspan(i * columns, columns));
  }
  return true;
}

}  // namespace finetune
