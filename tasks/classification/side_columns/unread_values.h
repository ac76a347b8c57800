// Counts the values of columns that the linear model cannot use.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/rows/records.h"
#include "tasks/classification/ngrams/vectorizer.h"

namespace finetune {

// The number of rows without a number, of each of these columns. Error(data) if that is all of
// them.
std::vector<int64_t> unnumbered_rows(const Table& table, std::span<const uint32_t> rows,
                                     std::span<const size_t> columns);

class UnreadValues {
 public:
  // Counts in one more row; `whole` as with_columns() gives it.
  void add(std::string_view whole, const NgramIndex& index);
  // "column 'amount': 3 of 40 rows have no number and count as the mean of training". `names`:
  // numbers first.
  std::vector<std::string> describe(const std::vector<std::string>& names, size_t numbers) const;

 private:
  int64_t rows_ = 0;
  std::vector<int64_t> unread_;  // of each column
};

}  // namespace finetune
