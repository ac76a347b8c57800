// Deals the different texts of each label to the folds in turn.
#include "tasks/classification/rows/folds.h"

#include <unordered_map>

namespace finetune {

std::vector<int32_t> folds_of(std::span<const uint64_t> text_sums, const RowLabels& labels,
                              int folds) {
  std::unordered_map<uint64_t, int32_t> fold_of_text;
  std::unordered_map<int32_t, int32_t> next_of_label;
  int32_t first = 0;  // of the next new label: rare labels do not all begin in one fold
  std::vector<int32_t> out;
  for (size_t row = 0; row < text_sums.size(); ++row) {
    const auto [text, is_new] = fold_of_text.try_emplace(text_sums[row], 0);
    if (is_new) {
      const std::span<const int32_t> own = labels[row];
      const auto [next, is_new_label] = next_of_label.try_emplace(own.empty() ? -1 : own[0], first);
      if (is_new_label) first = (first + 1) % folds;
      text->second = next->second;
      next->second = (next->second + 1) % folds;
    }
    out.push_back(text->second);
  }
  return out;
}

}  // namespace finetune
