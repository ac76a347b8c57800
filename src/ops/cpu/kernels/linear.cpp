// Linear layers: three matrix products, and the bias gradient by column sums.
#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/kernels/linear.cpp"
#include <algorithm>

#include "hwy/foreach_target.h"
#include "ops/backend.h"
#include "ops/cpu/simd-inl.h"
#include "ops/cpu/tasks.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {
namespace {

constexpr int64_t kRowsOfASum = 64;  // rows added up before they are added to the total
constexpr int64_t kRowsAhead = 4;

template <class T>
void typed_column_sums(Tensor x, float* sums, int64_t begin, int64_t end, bool accumulate) {
  const int64_t count = end - begin;
  if (!accumulate) std::fill(sums + begin, sums + end, 0.0f);
  for (int64_t first = 0; first < x.rows; first += kRowsOfASum) {
    HWY_ALIGN float block[cpu::kColumnStrip] = {};
    for (int64_t r = first; r < HWY_MIN(first + kRowsOfASum, x.rows); ++r) {
      prefetch(x.as<T>() + (r + kRowsAhead) * x.stride + begin, 0, 1, count);
      add_to(x.as<T>() + r * x.stride + begin, block, count);
    }
    add_to(block, sums + begin, count);
  }
}

// sums[begin, end) = or += column sums of x
void column_sums(Tensor x, float* sums, int64_t begin, int64_t end, bool accumulate) {
  x.dtype == DType::bf16 ? typed_column_sums<bfloat16>(x, sums, begin, end, accumulate)
                         : typed_column_sums<float>(x, sums, begin, end, accumulate);
}

}  // namespace
}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/cpu/cpu_backend.h"

namespace finetune {
HWY_EXPORT(column_sums);

// Multiplies in the precision of the backend.
void CpuBackend::product(const cpu::Product& p) {
  compute_ == DType::bf16 ? cpu::bf16_gemm(p) : cpu::fp32_gemm(p);
}

void CpuBackend::linear(Tensor x, Tensor w, Tensor bias, Tensor y) {
  product({.a = x, .b = w, .transpose_b = true, .c = y, .bias = bias, .packed_b = packed_.find(w)});
}

void CpuBackend::linear_backward_input(Tensor dy, Tensor w, Tensor dx, bool accumulate) {
  product({.a = dy, .b = w, .c = dx, .accumulate = accumulate, .packed_b = packed_.find(w)});
}

void CpuBackend::linear_backward_weight(Tensor dy, Tensor x, Tensor dw, Tensor dbias,
                                        bool accumulate) {
  packed_.written(dw);
  product({.a = dy, .transpose_a = true, .b = x, .c = dw, .accumulate = accumulate});
  if (!dbias) return;
  FINETUNE_CHECK(dbias.size() == dy.cols);
  cpu::for_ranges(dy.cols, cpu::kColumnStrip, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(column_sums)(dy, dbias.f32(), begin, end, accumulate);
  });
}

}  // namespace finetune
#endif
