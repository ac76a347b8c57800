// Columns beside the text, numbers and categories, as features of the linear model on n-grams.
//
// A row reaches that model as one string: the text, and behind it each column's value after a mark.
// The model knows how many columns there are, so a mark inside the text means nothing. A number
// becomes its standardised logarithm and a feature of its sign; without a number a row has neither,
// so that it counts as the mean. A category is one feature, as an n-gram is.
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

// Of the logarithms sign(x) * ln(1 + |x|) of a column's numbers in the training rows.
struct NumberScale {
  double mean = 0, deviation = 1;
  bool comma_decimals = false;  // 1.234 is 1234
};

// The columns of a model, numbers first.
struct SideColumns {
  std::vector<NumberScale> numbers;
  size_t categories = 0;

  ColumnCounts counts() const { return {numbers.size(), categories}; }
};

// The string that the model reads: `text`, then the values of the row's columns.
std::string with_columns(std::string text, RowValues row, const TextColumns& columns);

struct SideRow {
  std::string_view text;
  std::vector<std::string_view> values;  // numbers, then categories
};
// Splits such a string again.
SideRow split_columns(std::string_view whole, const ColumnCounts& counts);

struct SideFeature {
  uint64_t hash;  // as an n-gram has one
  float value;
  size_t column;
};
// The features of the values, by column.
std::vector<SideFeature> side_features(const SideRow& row, const SideColumns& columns);

// Finds the scales of the columns of numbers.
class ScaleSums {
 public:
  // `columns`: how their numbers are written.
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
