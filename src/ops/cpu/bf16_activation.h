// Activations of tensors in bf16, where the machine has AVX-512 with BF16 (bf16_math.h).
#pragma once

#include "ops/backend.h"

namespace finetune::cpu {

// Of the kinds of the feed-forward network: not for tanh, which only the pooler has.
constexpr bool has_bf16_activation(Activation f) {
  return f != Activation::tanh;
}

// Rows [begin, end) of y = f(x), or of dx = dy * f'(x) where dy is given; all bf16.
void bf16_activation_rows(Activation f, Tensor x, Tensor dy, Tensor out, int64_t begin,
                          int64_t end);

}  // namespace finetune::cpu
