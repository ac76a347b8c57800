// Distributions of sequence lengths in tokens, special tokens included, taken from real data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace finetune {

// "bank": card transactions, mean 13.4 tokens, at most 53. "squad": windows of questions with their
// contexts, mean 171, at most 384. A number: all sequences have that length.
struct LengthDistribution {
  std::string name;
  int64_t longest = 0;
  std::vector<int64_t> quantiles;  // at 0, 1/64, 2/64, ... 1; linear in between

  // The length of draw i: a pure function of i.
  int64_t draw(uint64_t i) const;
};

// The name of the task whose data have these lengths: qa for "squad", else classification.
std::string_view task_of_lengths(std::string_view name);

// Error(usage) for another name, or a number outside [4, max_positions].
LengthDistribution length_distribution(std::string_view name, int64_t max_positions);

}  // namespace finetune
