// Probabilities of labels for rows that the model was not trained on, fold by fold.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tasks/classification/check/checked_data.h"

namespace finetune {

// One label a row.
struct OutOfFold {
  int64_t outputs = 0;
  std::vector<int32_t> labels;  // as the data has them
  // (rows, outputs) of the linear n-gram model, its scores softened by the temperature that suits
  // all rows best.
  std::vector<float> probabilities;
  std::vector<uint8_t> is_judged;  // 0: the row's label occurs in no other fold

  int64_t rows() const { return int64_t(labels.size()); }
  std::span<const float> row(int64_t i) const {
    return std::span(probabilities).subspan(size_t(i * outputs), size_t(outputs));
  }
};

inline constexpr int64_t kMostFoldScores = int64_t{1} << 27;  // rows times labels

// Of data.train. Error(usage) for several labels a row and for numbers. Error(data) for one label,
// for fewer different texts than folds, and for too many rows times labels. Error(device) if the
// model cannot be trained. They name `option`, which the user gave.
OutOfFold out_of_fold(const CheckedData& data, int folds, std::string_view option);

}  // namespace finetune
