// Counts the values in columns that the linear model cannot read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/columns/amount.h"
#include "data/rows/records.h"
#include "tasks/classification/ngrams/vectorizer.h"

namespace finetune {

// Reads the numbers in these columns. Error(data) if a column has none.
std::vector<NumberColumn> number_columns_of(const Table& table, std::span<const uint32_t> rows,
                                            std::span<const size_t> columns);
// Lines for the log: rows without a number, and how values such as 1.234 are read if the other rows
// do not show it.
std::vector<std::string> describe_numbers(const NumberColumn& column, const std::string& name);

class UnreadValues {
 public:
  // Counts another row. `whole`: from with_columns().
  void add(std::string_view whole, const NgramIndex& index);
  // "column 'amount': 3 of 40 rows have no number and count as the mean of training", or a warning
  // if it is all rows. `names`: numbers first.
  std::vector<std::string> describe(const std::vector<std::string>& names, size_t numbers) const;

 private:
  int64_t rows_ = 0;
  std::vector<int64_t> unread_;  // per column
};

}  // namespace finetune
