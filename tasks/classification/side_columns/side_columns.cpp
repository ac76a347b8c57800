// Joins and splits values, and converts them to features.
#include "tasks/classification/side_columns/side_columns.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/text/text.h"
#include "data/columns/amount.h"
#include "tasks/classification/ngrams/ngram_cutter.h"

namespace finetune {
namespace {

constexpr char kMark = '\x1F';  // ASCII's unit separator
constexpr uint64_t kNumberSeed = 0xA0761D6478BD642F, kSignSeed = 0xE7037ED1A0B428DB,
                   kCategorySeed = 0x8EBC6AF09C88C6E3;
constexpr double kMostDeviations = 5;  // from the mean

std::optional<double> logarithm_of(std::string_view value, const NumberScale& column) {
  const auto number = amount_of(value, column.comma_decimals);
  if (!number) return std::nullopt;
  return std::copysign(std::log1p(std::abs(*number)), *number);
}

uint64_t hash_of_category(size_t column, std::string_view value) {
  uint64_t hash = extended_hash(kCategorySeed, column);
  for (const char byte : trim(value)) hash = extended_hash(hash, uint8_t(byte));
  return hash;
}

}  // namespace

ColumnCounts counts_of(const TextColumns& columns) {
  return {columns.numbers.size(), columns.categories.size()};
}

std::string with_columns(std::string text, RowValues row, const TextColumns& columns) {
  for (const auto* part : {&columns.numbers, &columns.categories}) {
    for (const size_t column : *part) {
      text += kMark;
      text += row[column];
      std::replace(text.end() - ptrdiff_t(row[column].size()), text.end(), kMark, ' ');
    }
  }
  return text;
}

SideRow split_columns(std::string_view whole, const ColumnCounts& counts) {
  SideRow out{whole, std::vector<std::string_view>(counts.all())};
  for (auto value = out.values.rbegin(); value != out.values.rend(); ++value) {
    const size_t mark = out.text.rfind(kMark);
    if (mark == out.text.npos) break;
    *value = out.text.substr(mark + 1);
    out.text = out.text.substr(0, mark);
  }
  return out;
}

std::vector<SideFeature> side_features(const SideRow& row, const SideColumns& columns) {
  std::vector<SideFeature> out;
  for (size_t column = 0; column < row.values.size(); ++column) {
    if (column >= columns.numbers.size()) {
      const size_t category = column - columns.numbers.size();
      out.push_back({hash_of_category(category, row.values[column]), 1, column});
      continue;
    }
    const NumberScale& scale = columns.numbers[column];
    const auto logarithm = logarithm_of(row.values[column], scale);
    if (!logarithm) continue;
    const double standardised = (*logarithm - scale.mean) / scale.deviation;
    const uint64_t sign = *logarithm < 0 ? 0 : *logarithm > 0 ? 2 : 1;
    out.push_back({extended_hash(kNumberSeed, column),
                   float(std::clamp(standardised, -kMostDeviations, kMostDeviations)), column});
    out.push_back({extended_hash(extended_hash(kSignSeed, column), sign), 1, column});
  }
  return out;
}

void ScaleSums::add(const SideRow& row) {
  for (size_t column = 0; column < sums_.size(); ++column) {
    const auto logarithm = logarithm_of(row.values[column], columns_[column]);
    if (!logarithm) continue;
    Sum& sum = sums_[column];
    const double before = *logarithm - sum.mean;
    sum.mean += before / ++sum.count;
    sum.squares += before * (*logarithm - sum.mean);
  }
}

std::vector<NumberScale> ScaleSums::scales() const {
  std::vector<NumberScale> out = columns_;
  for (size_t column = 0; column < sums_.size(); ++column) {
    const Sum& sum = sums_[column];
    const double deviation = sum.count > 0 ? std::sqrt(sum.squares / sum.count) : 0;
    out[column].mean = sum.mean;
    out[column].deviation = deviation > 1e-9 ? deviation : 1;
  }
  return out;
}

}  // namespace finetune
