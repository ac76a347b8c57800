// Compares texts by 16-byte hashes instead of keeping them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace finetune {

using TextSum = std::pair<uint64_t, uint64_t>;

// Hashes the parts of one text (the columns of a row; a question and its context), ignoring white
// space around each part. Hashes are valid only within one process.
TextSum text_sum(std::span<const std::string_view> parts);

// The set of texts that a model was trained on.
class TrainedTexts {
 public:
  TrainedTexts() = default;
  explicit TrainedTexts(std::vector<TextSum> sums);
  bool contains(const TextSum& sum) const {
    return std::binary_search(sums_.begin(), sums_.end(), sum);
  }

 private:
  std::vector<TextSum> sums_;  // ascending, each once
};

}  // namespace finetune
