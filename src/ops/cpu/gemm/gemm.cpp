// Checks the shapes of a matrix product.
#include "ops/cpu/gemm/gemm.h"

namespace finetune::cpu {

void check(const Product& p) {
  const int64_t m = p.c.rows, n = p.c.cols;
  FINETUNE_CHECK((p.transpose_a ? p.a.cols : p.a.rows) == m);
  FINETUNE_CHECK((p.transpose_b ? p.b.cols : p.b.rows) == p.depth());
  FINETUNE_CHECK(p.b_cols() == n);
  FINETUNE_CHECK(!p.bias || (p.bias.size() == n && !p.accumulate));
  FINETUNE_CHECK(!p.transpose_a || (!p.bias && !p.transpose_b));
  FINETUNE_CHECK(!p.accumulate || p.c.dtype == DType::f32);
}

}  // namespace finetune::cpu
