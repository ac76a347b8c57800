// A bounded number of rows copied out of a RowReader, so that they can be tokenized together.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/columns/text_columns.h"
#include "data/rows/records.h"

namespace finetune {

class RowChunk {
 public:
  static constexpr int64_t kMostRows = 4096;
  static constexpr size_t kMostBytes = size_t{8} << 20;
  static constexpr size_t kMostValues = size_t{4} << 20;  // more than 4096 rows of 1,000 columns
  // Reads up to max_rows rows, fewer if their text exceeds max_bytes or they have kMostValues. With
  // `as_they_come` it does not wait for a second row. False if no row is left.
  bool read(RowReader& reader, int64_t max_rows = kMostRows, size_t max_bytes = kMostBytes,
            bool as_they_come = false);
  void clear();
  void add(RowValues values);  // a copy
  int64_t size() const { return count_; }
  bool has_room(int64_t max_rows = kMostRows, size_t max_bytes = kMostBytes) const {
    return count_ < max_rows && text_.size() < max_bytes && ends_.size() < kMostValues;
  }
  // Valid until the chunk changes.
  std::span<const RowValues> rows();

 private:
  int64_t count_ = 0;
  std::string text_;
  std::vector<size_t> ends_;  // of each value in text_
  std::vector<std::string_view> values_;
  std::vector<RowValues> rows_;
};

}  // namespace finetune
