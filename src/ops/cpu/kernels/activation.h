// What the kernels of activations share.
#pragma once

#include "ops/backend.h"

namespace finetune::cpu {

// y = f(x); where dy is given dx = dy * f'(x), and y may be absent.
struct ActivationCall {
  Activation f;
  Tensor x, dy, dx, y;
};

// Row r of x; null where x is absent.
template <typename T>
T* row_of(Tensor x, int64_t r) {
  return x ? x.as<T>() + r * x.stride : nullptr;
}

// bf16_activation.cpp: activations of tensors in bf16, where the machine has AVX-512 with BF16
// (bf16_math.h). Of the kinds of the feed-forward network: not for tanh, which only the pooler has.
constexpr bool has_bf16_activation(Activation f) {
  return f != Activation::tanh;
}

void bf16_activation_rows(const ActivationCall& call, int64_t begin, int64_t end);

}  // namespace finetune::cpu
