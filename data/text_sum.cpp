// Hashes a text's parts with two functions of 8 bytes each.
#include "data/text_sum.h"

#include <functional>
#include <string>

#include "core/text/text.h"

namespace finetune {

TextSum text_sum(std::span<const std::string_view> parts) {
  constexpr uint64_t kPrime = 0x100000001b3;
  uint64_t first = 0xcbf29ce484222325, second = parts.size();
  for (std::string_view part : parts) {
    part = trim(part);
    first = (first ^ part.size()) * kPrime;  // separates the parts
    for (char c : part) first = (first ^ uint8_t(c)) * kPrime;
    second = second * 0x9e3779b97f4a7c15 + std::hash<std::string_view>()(part);
    second ^= second >> 32;
  }
  return {first, second};
}

TrainedTexts::TrainedTexts(std::vector<TextSum> sums) : sums_(std::move(sums)) {
  std::sort(sums_.begin(), sums_.end());
  sums_.erase(std::unique(sums_.begin(), sums_.end()), sums_.end());
  sums_.shrink_to_fit();
}

}  // namespace finetune
