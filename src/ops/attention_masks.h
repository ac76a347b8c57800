// Where CUDA's attention keeps its dropout masks between forward and backward pass. The module's
// calls, the plan of activations and the forecast of memory must agree.
#pragma once

#include <cstdint>

namespace finetune {

// Words of 64 bits of a query, for sequences of up to `longest` keys.
constexpr int64_t attention_mask_words(int64_t longest) {
  return longest / 64 + 1;
}

// Floats of memory for `rows` queries of so many heads.
constexpr int64_t attention_mask_floats(int64_t heads, int64_t rows, int64_t longest) {
  return 2 * (heads * rows * attention_mask_words(longest) + 1);
}

}  // namespace finetune
