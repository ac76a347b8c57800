// Remembers which tokens and pairs of neighbouring tokens occur in the training rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/numeric/packed_batch.h"

namespace finetune {

// A token or pair marks the place of its hash. At most about one place in eight is marked, so few
// new tokens are mistaken for known ones. If training has more than kMostPlaces / 8 tokens and
// pairs, more are.
class SeenTokens {
 public:
  static constexpr size_t kLeastPlaces = 1 << 10, kMostPlaces = 1 << 19;

  // `unknown`: the token for text that the vocabulary lacks; it always counts as new.
  SeenTokens(const SampleView& samples, int32_t unknown);
  // Reads the text of hex(). For any other text the result is_empty().
  SeenTokens(std::string_view hex, int32_t unknown);

  bool is_empty() const { return places_.empty(); }
  std::string hex() const;

  // Counts the tokens and pairs of a sample without the special tokens around it: all of them, and
  // the ones that do not occur in training.
  struct Counts {
    int64_t all = 0, fresh = 0;
  };
  Counts count(std::span<const int32_t> sample) const;

 private:
  template <typename Visit>
  void for_each(std::span<const int32_t> sample, Visit&& visit) const;
  bool fold_up();

  int32_t unknown_;
  std::vector<uint8_t> places_;  // 1: a token or pair of training has this place
};

}  // namespace finetune
