// Looks which columns of a row gave no known feature.
#include "tasks/classification/side_columns/unread_values.h"

#include <algorithm>

#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "data/columns/amount.h"
#include "tasks/classification/side_columns/side_columns.h"

namespace finetune {

std::vector<int64_t> unnumbered_rows(const Table& table, std::span<const uint32_t> rows,
                                     std::span<const size_t> columns) {
  std::vector<int64_t> counts;
  for (const size_t column : columns) {
    counts.push_back(std::count_if(rows.begin(), rows.end(), [&](uint32_t row) {
      return !amount_of(table.rows()[row].values[column]);
    }));
    if (counts.back() < int64_t(rows.size())) continue;
    const Table::Row& first = table.rows()[rows[0]];
    throw data_error(table.where(first), ": column ", in_quotes(table.columns()[column]),
                     " has no numbers: ", in_quotes(first.values[column]),
                     "; --category-columns reads other values");
  }
  return counts;
}

void UnreadValues::add(std::string_view whole, const NgramIndex& index) {
  ++rows_;
  const SideColumns& columns = index.columns();
  unread_.resize(columns.counts().all());
  std::vector<bool> is_read(unread_.size());
  for (const SideFeature& feature :
       side_features(split_columns(whole, columns.counts()), columns)) {
    const bool is_number = feature.column < columns.numbers.size();
    if (is_number || index.number_of(feature.hash) >= 0) is_read[feature.column] = true;
  }
  for (size_t i = 0; i < unread_.size(); ++i) unread_[i] += !is_read[i];
}

std::vector<std::string> UnreadValues::describe(const std::vector<std::string>& names,
                                                size_t numbers) const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < unread_.size() && i < names.size(); ++i) {
    if (unread_[i] == 0) continue;
    const bool is_one = unread_[i] == 1;
    lines.push_back(concat(
        "column ", in_quotes(names[i]), ": ", unread_[i], " of ", counted(rows_, "row"),
        i < numbers
            ? concat(is_one ? " has" : " have", " no number and ", is_one ? "counts" : "count",
                     " as the mean of training")
            : concat(is_one ? " has" : " have", " a value that training had not; it is ignored")));
  }
  return lines;
}

}  // namespace finetune
