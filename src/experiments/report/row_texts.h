// The texts of saved rows, for a report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/columns/text_columns.h"
#include "experiments/compare/saved_predictions.h"
#include "experiments/report/page/charts.h"

namespace finetune {

constexpr size_t kMostTextBytes = 500;  // shown of a text
constexpr int64_t kMostErrors = 50;     // shown in a table

// The text columns of a run, if they are known.
class RowTexts {
 public:
  RowTexts(const RunRecord& run, const SavedRows& saved);

  bool known() const { return columns_.has_value(); }
  std::string text(size_t row) const;  // both texts of a pair, with " / " between them
  // A histogram of the texts' lengths in characters; empty if the columns are not known. `wrong`:
  // for each row, or empty.
  std::string lengths_html(const std::vector<bool>& wrong) const;

 private:
  const SavedRows& saved_;
  std::optional<TextColumns> columns_;
};

// A histogram of lengths in characters, split into right and wrong rows if `wrong` is not empty.
// The last bin includes the longest 1 % of the texts.
std::string text_lengths_html(const std::string& title, const std::vector<int64_t>& lengths,
                              const std::vector<bool>& wrong);

}  // namespace finetune
