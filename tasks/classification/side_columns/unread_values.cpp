// Finds the columns of a row that gave no known feature.
#include "tasks/classification/side_columns/unread_values.h"

#include <algorithm>

#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "data/columns/amount.h"
#include "tasks/classification/side_columns/side_columns.h"

namespace finetune {

std::vector<NumberColumn> number_columns_of(const Table& table, std::span<const uint32_t> rows,
                                            std::span<const size_t> columns) {
  std::vector<NumberColumn> found;
  for (const size_t column : columns) {
    NumberColumn& out = found.emplace_back();
    for (const uint32_t row : rows) {
      const std::string_view value = table.rows()[row].values[column];
      out.unnumbered += !amount_of(value);
      out.votes.add(value);
    }
    if (out.unnumbered < int64_t(rows.size())) continue;
    const Table::Row& first = table.rows()[rows[0]];
    throw data_error(table.where(first), ": column ", in_quotes(table.columns()[column]),
                     " has no numbers: ", in_quotes(first.values[column]),
                     "; --category-columns reads other values");
  }
  return found;
}

std::vector<std::string> describe_numbers(const NumberColumn& column, const std::string& name) {
  std::vector<std::string> lines;
  const auto add = [&](const auto&... parts) {
    lines.push_back(concat("train: column ", in_quotes(name), " ", parts...));
  };
  if (column.unnumbered > 0) {
    add("has no number in ", counted(column.unnumbered, "row"), "; its mean stands for them");
  }
  const DecimalVotes& votes = column.votes;
  const int64_t points = votes.count(Decimals::unsure_point);
  const int64_t unsure = points + votes.count(Decimals::unsure_comma);
  if (unsure == 0) return lines;
  const char* example = points > 0 ? "'1.234'" : "'1,234'";
  if (votes.comma_decimals()) {
    add("has commas before decimals, so ", example, " is ", points > 0 ? "1234" : "1.234", " (",
        counted(unsure, "row"), ")");
  } else if (votes.count(Decimals::behind_point) == 0 || votes.count(Decimals::behind_comma) > 0) {
    add("does not show whether ", example, " is 1234; it is read as ",
        points > 0 ? "1.234" : "1234", " (", counted(unsure, "row"), "); decimals such as '",
        points > 0 ? "1.234,00" : "1,234.00", "' would show it");
  }
  return lines;
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
    if (i < numbers && unread_[i] == rows_) {
      lines.push_back(concat("warning: column ", in_quotes(names[i]), ": none of ",
                             counted(rows_, "row"),
                             " has a number; all count as the mean of "
                             "training"));
      continue;
    }
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
