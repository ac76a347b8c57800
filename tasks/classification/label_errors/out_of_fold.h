// Probabilities of labels for rows that the model was not trained on, fold by fold.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tasks/classification/check/checked_data.h"

namespace finetune {

// For one label per row.
struct OutOfFold {
  int64_t outputs = 0;
  std::vector<int32_t> labels;  // from the data
  // (rows, outputs) of the linear n-gram model: its scores with the temperature that is best for
  // all rows.
  std::vector<float> probabilities;
  std::vector<uint8_t> is_judged;  // 0: the row's label occurs in no other fold

  int64_t rows() const { return int64_t(labels.size()); }
  std::span<const float> row(int64_t i) const {
    return std::span(probabilities).subspan(size_t(i * outputs), size_t(outputs));
  }
};

inline constexpr int64_t kMostFoldScores = int64_t{1} << 27;  // rows times labels

// Scores the rows of data.train. Error(usage) for several labels per row and for numbers.
// Error(data) if there is one label, fewer different texts than folds, or too many rows times
// labels. Error(device) if the model cannot be trained. Errors name `option`, which the user gave.
OutOfFold out_of_fold(const CheckedData& data, int folds, std::string_view option);

}  // namespace finetune
