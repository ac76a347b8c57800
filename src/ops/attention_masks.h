// The size of the dropout masks that CUDA's attention keeps between forward and backward pass. The
// module's calls, the plan of activations and the forecast of memory must agree on it.
#pragma once

#include <cstdint>

namespace finetune {

// The number of 64-bit words for a query, in sequences of up to `longest` keys.
constexpr int64_t attention_mask_words(int64_t longest) {
  return longest / 64 + 1;
}

// Floats of memory for `rows` queries in each of `heads` heads.
constexpr int64_t attention_mask_floats(int64_t heads, int64_t rows, int64_t longest) {
  return 2 * (heads * rows * attention_mask_words(longest) + 1);
}

}  // namespace finetune
