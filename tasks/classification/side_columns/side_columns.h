// Columns beside the text, numbers and categories, as features of the linear model on n-grams.
//
// A row reaches that model as one string: the text, followed by each column's value after a mark.
// The model knows the number of columns, so a mark inside the text does no harm. A number gives two
// features: its standardised logarithm and its sign. Without a number a row has neither, which is
// the same as the mean. A category gives one feature, like an n-gram.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/columns/text_columns.h"

namespace finetune {

struct ColumnCounts {
  size_t numbers = 0, categories = 0;

  size_t all() const { return numbers + categories; }
  bool operator==(const ColumnCounts&) const = default;
};
ColumnCounts counts_of(const TextColumns& columns);

// Mean and deviation of sign(x) * ln(1 + |x|) over a column's numbers in the training rows.
struct NumberScale {
  double mean = 0, deviation = 1;
  bool comma_decimals = false;  // 1.234 means 1234
};

// The columns of a model, numbers first.
struct SideColumns {
  std::vector<NumberScale> numbers;
  size_t categories = 0;

  ColumnCounts counts() const { return {numbers.size(), categories}; }
};

// The model's input: `text`, then the values of the row's columns.
std::string with_columns(std::string text, RowValues row, const TextColumns& columns);

struct SideRow {
  std::string_view text;
  std::vector<std::string_view> values;  // numbers, then categories
};
// Splits a string of with_columns().
SideRow split_columns(std::string_view whole, const ColumnCounts& counts);

struct SideFeature {
  uint64_t hash;  // like an n-gram's
  float value;
  size_t column;
};
// The features of the values, column by column.
std::vector<SideFeature> side_features(const SideRow& row, const SideColumns& columns);

// Computes the scales of the number columns.
class ScaleSums {
 public:
  // `columns`: with comma_decimals set for each column.
  explicit ScaleSums(std::vector<NumberScale> columns)
      : columns_(std::move(columns)), sums_(columns_.size()) {}
  void add(const SideRow& row);
  std::vector<NumberScale> scales() const;

 private:
  struct Sum {
    double count = 0, mean = 0, squares = 0;
  };
  std::vector<NumberScale> columns_;
  std::vector<Sum> sums_;
};

}  // namespace finetune
