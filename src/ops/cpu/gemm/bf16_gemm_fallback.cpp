// bf16_gemm: on tiles if the machine multiplies bf16, else by rounded copies and fp32_gemm.
#include "ops/cpu/gemm/bf16_gemm.h"
#include "ops/cpu/gemm/gemm.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/tasks.h"

namespace finetune::cpu {
namespace {

// Calls body(r) for every row of x.
template <typename Body>
void for_rows(Tensor x, const Body& body) {
  for_ranges(x.rows, row_grain(x.cols), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) body(r);
  });
}

// Makes a contiguous copy at `to`, rounded to bf16 values.
Tensor rounded(Tensor x, float* to) {
  for_rows(x, [&](int64_t r) {
    float* row = to + r * x.cols;
    if (x.dtype == DType::bf16) {
      const bfloat16* from = x.as<bfloat16>() + r * x.stride;
      for (int64_t i = 0; i < x.cols; ++i) row[i] = float(from[i]);
    } else {
      const float* from = x.f32() + r * x.stride;
      for (int64_t i = 0; i < x.cols; ++i) row[i] = float(bfloat16(from[i]));
    }
  });
  return matrix(to, x.rows, x.cols);
}

}  // namespace

void bf16_gemm(const Product& p) {
  check(p);
  if (multiplies_bf16(select_isa())) return bf16_gemm_tiles(p);
  Product copy = p;
  const bool round = p.c.dtype == DType::bf16;
  float* space = scratch(Scratch::rounded, p.a.size() + p.b.size() + (round ? p.c.size() : 0));
  copy.a = rounded(p.a, space);
  copy.b = rounded(p.b, space + p.a.size());
  if (round) copy.c = matrix(space + p.a.size() + p.b.size(), p.c.rows, p.c.cols);
  fp32_gemm(copy);
  if (!round) return;
  for_rows(p.c, [&](int64_t r) {
    const float* from = copy.c.f32() + r * copy.c.stride;
    bfloat16* to = p.c.as<bfloat16>() + r * p.c.stride;
    for (int64_t i = 0; i < p.c.cols; ++i) to[i] = bfloat16(from[i]);
  });
}

}  // namespace finetune::cpu
