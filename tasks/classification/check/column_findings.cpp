// Findings about sources that reveal the label: other columns, and the text itself.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "core/text/text.h"
#include "tasks/classification/check/findings.h"

namespace finetune {
namespace {

constexpr double kTelling = 0.95;         // share of rows whose label the column reveals
constexpr double kLeastCorrection = 0.5;  // of the rows that the majority gets wrong
constexpr double kLabelInText = 0.5;      // share of rows
constexpr size_t kShortestLabel = 3;      // bytes, to look for it in a text

using Counts = std::unordered_map<std::string_view, int64_t>;

// Takes out one row with the label `own`. Returns whether `own` is still the most frequent label of
// the others, with no other label as frequent.
bool others_say(const Counts& counts, std::string_view own) {
  const int64_t rest = counts.at(own) - 1;
  if (rest == 0) return false;
  return std::none_of(counts.begin(), counts.end(), [&](const auto& other) {
    return other.first != own && other.second >= rest;
  });
}

// Counts rows whose label follows from the other rows with the same value in this column.
int64_t rows_told(const CheckedSide& side, size_t column) {
  std::unordered_map<std::string_view, Counts> values;
  for (size_t i = 0; i < side.size(); ++i) ++values[side.values(i)[column]][side.labels[i]];
  int64_t told = 0;
  for (const auto& [value, counts] : values) {
    for (const auto& [label, count] : counts) {
      if (others_say(counts, label)) told += count;
    }
  }
  return told;
}

int64_t rows_of_majority(const CheckedSide& side) {
  Counts counts;
  int64_t most = 0;
  for (std::string_view label : side.labels) most = std::max(most, ++counts[label]);
  return most;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  return out;
}

// memmem takes linear time. std::string's find() is quadratic if text and label begin alike.
bool contains(const std::string& text, const std::string& part) {
  return ::memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
}

}  // namespace

void find_telling_columns(const CheckedData& data, Findings& out) {
  if (data.problem == ProblemType::regression) return;
  const CheckedSide& side = data.train;
  const auto rows = double(side.size()), majority = double(rows_of_majority(side));
  const std::vector<std::string>& columns = side.table->columns();
  for (size_t column = 0; column < columns.size(); ++column) {
    const bool is_text =
        std::find(side.text.text.begin(), side.text.text.end(), column) != side.text.text.end() ||
        side.text.pair == column;
    const bool is_only_text = is_text && side.text.text.size() == 1 && !side.text.pair;
    if (column == side.label || is_only_text) continue;
    const int64_t told = rows_told(side, column);
    const double gain = (double(told) - majority) / std::max(1.0, rows - majority);
    if (double(told) < kTelling * rows || gain < kLeastCorrection) continue;
    out.push_back({is_text ? FindingLevel::warning : FindingLevel::note, "telling-column",
                   concat("column ", in_quotes(columns[column]), " tells the label of ",
                          percent(told, int64_t(side.size())), " of the rows",
                          is_text ? ", and is part of the text: will it be known of new rows?"
                                  : ", and is not part of the text; take it in only if it is known "
                                    "of new rows"),
                   told});
  }
}

void find_labels_in_texts(const CheckedData& data, Findings& out) {
  if (data.problem != ProblemType::single_label) return;
  const CheckedSide& side = data.train;
  int64_t rows = 0;
  for (size_t i = 0; i < side.size(); ++i) {
    if (side.labels[i].size() < kShortestLabel) continue;
    rows += contains(lower_case(side.texts[i]), lower_case(side.labels[i]));
  }
  if (double(rows) < kLabelInText * double(side.size())) return;
  out.push_back({FindingLevel::warning, "label-in-text",
                 concat(percent(rows, int64_t(side.size())),
                        " of the texts contain their own label: will those of new rows?"),
                 rows});
}

}  // namespace finetune
