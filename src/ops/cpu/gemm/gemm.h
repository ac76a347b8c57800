// The CPU backend's matrix products: operands, fp32_gemm and bf16_gemm. Sums are in registers,
// operands are packed in the order of their use (Goto and van de Geijn, Anatomy of High-Performance
// Matrix Multiplication, ACM TOMS 34(3), 2008).
#pragma once

#include "core/numeric/tensor.h"

namespace finetune::cpu {

// c (M, N) = op(a) * op(b) + bias, or c += op(a) * op(b) with `accumulate`. op(a) is (M, K), op(b)
// is (K, N): the matrix or its transpose. bias (1, N) may be absent. Only weight gradients have a
// transposed `a`; then b is not transposed and there is no bias. Needs K > 0. An element of c is a
// chain of fused multiply-adds over K in order, starting from 0 or c, then the bias: the same bits
// for any number of threads, on AVX2 and AVX-512.
struct Product {
  Tensor a;
  bool transpose_a = false;
  Tensor b;
  bool transpose_b = false;
  Tensor c;
  bool accumulate = false;
  Tensor bias = {};
  const uint16_t* packed_b =
      nullptr;  // for bf16 products: b's packed groups (packed_weights.h), or null

  int64_t depth() const { return transpose_a ? a.rows : a.cols; }   // K
  int64_t b_cols() const { return transpose_b ? b.rows : b.cols; }  // N
};
void fp32_gemm(const Product& product);

// The same with operands rounded to bf16 and fp32 sums; a, b, and c without `accumulate` may
// themselves be bf16. Uses tiles if the machine multiplies bf16 and isa.h selects that, else slow
// rounding copies.
void bf16_gemm(const Product& product);

// FINETUNE_CHECKs that the shapes match and are supported.
void check(const Product& product);

}  // namespace finetune::cpu
