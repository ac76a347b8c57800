// Matrix products of the CPU backend.
#pragma once

#include "core/tensor.h"

namespace finetune::cpu {

// c (M, N) = op(a) * op(b) + bias, or c += op(a) * op(b) with `accumulate`. op(a) is (M, K), op(b)
// (K, N): the matrix or its transpose. bias (1, N) may be absent. A transposed `a` is for weight
// gradients alone: it accumulates, and b is not transposed. The product is cut into tiles of c that
// depend on M and N alone; one thread computes a tile and sums over K in a fixed order.
struct Product {
  Tensor a;
  bool transpose_a = false;
  Tensor b;
  bool transpose_b = false;
  Tensor c;
  bool accumulate = false;
  Tensor bias = {};
};
void multiply(const Product& product);

}  // namespace finetune::cpu
