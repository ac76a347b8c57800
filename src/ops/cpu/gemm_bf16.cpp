#include "ops/cpu/amx_gemm.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/tasks.h"

namespace finetune::cpu {
namespace {

// A contiguous copy at `to` whose values a bf16 can hold.
Tensor rounded(Tensor x, float* to) {
  for_ranges(x.rows, row_grain(x.cols), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* from = x.f32() + r * x.stride;
      for (int64_t i = 0; i < x.cols; ++i) to[r * x.cols + i] = float(bfloat16(from[i]));
    }
  });
  return matrix(to, x.rows, x.cols);
}

}  // namespace

void multiply_bf16(const Product& p) {
  check(p);
  if (select_isa() == Isa::amx) return amx_multiply(p);
  Product copy = p;
  float* space = scratch(Scratch::operation, p.a.size() + p.b.size());
  copy.a = rounded(p.a, space);
  copy.b = rounded(p.b, space + p.a.size());
  multiply(copy);
}

}  // namespace finetune::cpu
