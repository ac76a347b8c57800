// Copies rows until a count or a number of bytes is reached.
#include "data/columns/row_chunk.h"

namespace finetune {

bool RowChunk::read(RowReader& reader, int64_t max_rows, size_t max_bytes, bool as_they_come) {
  clear();
  Row row;
  while (has_room(max_rows, max_bytes) && reader.next(row)) {
    add(row.values);
    if (as_they_come && !reader.ready()) break;
  }
  return size() > 0;
}

void RowChunk::clear() {
  count_ = 0;
  text_.clear();
  ends_.clear();
}

void RowChunk::add(RowValues values) {
  for (std::string_view value : values) {
    text_ += value;
    ends_.push_back(text_.size());
  }
  ++count_;
}

std::span<const RowValues> RowChunk::rows() {
  values_.clear();
  rows_.clear();
  size_t begin = 0;
  for (size_t end : ends_) {
    values_.push_back(std::string_view(text_).substr(begin, end - begin));
    begin = end;
  }
  for (size_t i = 0; i < size_t(count_); ++i) {
    size_t columns = values_.size() / size_t(count_);
    rows_.push_back(RowValues(values_).subspan(i * columns, columns));
  }
  return rows_;
}

}  // namespace finetune
