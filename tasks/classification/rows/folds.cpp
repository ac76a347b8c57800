// Distributes the different texts of each label to the folds in turn.
#include "tasks/classification/rows/folds.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "tasks/objective.h"

namespace finetune {

std::vector<int32_t> folds_of(std::span<const uint64_t> text_sums, const RowLabels& labels,
                              int folds) {
  std::unordered_map<uint64_t, int32_t> fold_of_text;
  std::unordered_map<int32_t, int32_t> next_of_label;
  int32_t first = 0;  // of the next new label, so that not all rare labels begin in fold 0
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

std::vector<uint8_t> folds_of_samples(const TrainingArrays& arrays, int folds) {
  std::vector<uint64_t> sums;
  RowLabels labels;
  const SampleView& samples = arrays.samples;
  for (int64_t i = 0; i < samples.size(); ++i) {
    const auto row = size_t(i);
    const auto tokens =
        samples.ids.subspan(size_t(samples.offsets[row]), size_t(samples.length(i)));
    sums.push_back(std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes()}));
    if (!arrays.labels.empty()) {
      labels.add(arrays.labels.subspan(row, 1));
    } else if (!arrays.set_offsets.empty()) {
      labels.add(
          arrays.set_ids.subspan(size_t(arrays.set_offsets[row]),
                                 size_t(arrays.set_offsets[row + 1] - arrays.set_offsets[row])));
    } else {
      labels.add({});
    }
  }
  const std::unordered_set<uint64_t> texts(sums.begin(), sums.end());
  if (int64_t(texts.size()) < folds) {
    throw data_error(texts.size(), " different texts are too few for --folds ", folds);
  }
  const std::vector<int32_t> found = folds_of(sums, labels, folds);
  const int32_t filled = *std::max_element(found.begin(), found.end()) + 1;
  if (filled < folds) {
    throw data_error("the rows of the labels fill only ", filled, " folds of --folds ", folds,
                     "; give at most ", filled);
  }
  return {found.begin(), found.end()};
}

}  // namespace finetune
