// Which texts are the same: sums of 16 bytes in place of the texts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace finetune {

using TextSum = std::pair<uint64_t, uint64_t>;

// Of the parts of one text (the columns of a row; a question and its context). Texts are the same
// if all their parts are, apart from white space around each. The sums mean nothing outside of this
// process.
TextSum text_sum(std::span<const std::string_view> parts);

// The texts that a model was trained on.
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
