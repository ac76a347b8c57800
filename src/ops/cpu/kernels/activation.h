// Declarations that the activation kernels share.
#pragma once

#include "ops/backend.h"

namespace finetune::cpu {

// y = f(x). If dy is given, dx = dy * f'(x), and y may be absent.
struct ActivationCall {
  Activation f;
  Tensor x, dy, dx, y;
};

// y = dropout(f(u) * g) with x = [u, g]. If dy is given, dx as well.
struct GatedCall {
  Activation f;
  Tensor x, dy;
  Dropout dropout;
  RowNames names;
  int64_t first_column;
  Tensor dx, y;
};

// Row r of x, or null if x is absent.
template <typename T>
T* row_of(Tensor x, int64_t r) {
  return x ? x.as<T>() + r * x.stride : nullptr;
}

// bf16_activation.cpp: activations of bf16 tensors on machines with AVX-512 BF16 (bf16_math.h).
// Supports the activations of feed-forward layers, not tanh, which only the pooler uses.
constexpr bool has_bf16_activation(Activation f) {
  return f != Activation::tanh;
}

void bf16_activation_rows(const ActivationCall& call, int64_t begin, int64_t end);

}  // namespace finetune::cpu
