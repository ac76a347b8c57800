// Matrix products in fp32 by kernels of our own, for AVX2 and AVX-512 from one source: sums in
// registers, operands packed in the order of their use (Goto and van de Geijn, Anatomy of
// High-Performance Matrix Multiplication, ACM TOMS 34(3), 2008).
#pragma once

#include "ops/cpu/gemm.h"

namespace finetune::cpu {

// As multiply(). Each element of c is summed over K in parts of a fixed size, in order: its bits
// depend on nothing but its row of op(a), its column of op(b) and the vectors' width.
void panel_multiply(const Product& product);

}  // namespace finetune::cpu
