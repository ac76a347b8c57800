// The texts of saved rows, for those who read a report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/compare/saved_predictions.h"
#include "experiments/report/charts.h"
#include "tasks/classification/rows/text_columns.h"

namespace finetune {

constexpr size_t kMostTextBytes = 500;  // that are shown of one
constexpr int64_t kMostErrors = 50;     // that a table shows

// The run's text columns; nothing where they are not known.
class RowTexts {
 public:
  RowTexts(const RunRecord& run, const SavedRows& saved);

  bool known() const { return columns_.has_value(); }
  std::string text(size_t row) const;  // both texts of a pair, with " / " between them
  // A histogram of their lengths in characters; empty where they are not known. `wrong`: of each
  // row, or empty.
  std::string lengths_html(const std::vector<bool>& wrong) const;

 private:
  const SavedRows& saved_;
  std::optional<TextColumns> columns_;
};

// Lengths in characters, right and wrong ones apart where that is known; the longest percent is
// counted in the last bin.
std::string text_lengths_html(const std::string& title, const std::vector<int64_t>& lengths,
                              const std::vector<bool>& wrong);

}  // namespace finetune
