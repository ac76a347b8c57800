// Elementwise operations on vectors: dropout, sums, and rows selected by index.
#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/kernels/elementwise.cpp"
#include "hwy/foreach_target.h"
#include "ops/backend.h"
#include "ops/cpu/kernels/dropout-inl.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {
namespace {

void dropout_rows(Tensor x, const Dropout& dropout, RowNames names, Tensor y, int64_t begin,
                  int64_t end) {
  HWY_ALIGN float factors[kDropoutGroup];
  for (int64_t r = begin; r < end; ++r) {
    for (int64_t c = 0; c < x.cols; c += kDropoutGroup) {
      dropout_group(dropout, names.position[r], names.sample[r], uint32_t(c / kDropoutGroup),
                    factors);
      const float* from = x.f32() + r * x.stride + c;
      float* to = y.f32() + r * y.stride + c;
      for_lanes(std::min(kDropoutGroup, x.cols - c), [&](auto d, int64_t i) HWY_ATTR {
        prefetch_ahead(i, from);
        hn::StoreU(hn::Mul(hn::LoadU(d, from + i), hn::LoadU(d, factors + i)), d, to + i);
      });
    }
  }
}

void add_row(const float* x, float* y, int64_t count) {
  add_to(x, y, count);
}

}  // namespace
}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cstring>

#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/tasks.h"

namespace finetune {
HWY_EXPORT(dropout_rows);
HWY_EXPORT(add_row);

namespace {

// y row r = x row from[r]; a null index is the identity.
void copy_rows(Tensor x, const int32_t* from, Tensor y, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const int64_t source = from ? from[r] : r;
    std::memmove(y.f32() + r * y.stride, x.f32() + source * x.stride,
                 size_t(y.cols) * sizeof(float));
  }
}

}  // namespace

void CpuBackend::dropout(Tensor x, Dropout dropout, RowNames names, Tensor y) {
  dropout = dropout.taken();
  FINETUNE_CHECK(y.rows == x.rows && y.cols == x.cols);
  if (!dropout.on() && x.data == y.data) return;
  cpu::for_ranges(x.rows, cpu::row_grain(x.cols), [&](int64_t begin, int64_t end) {
    if (!dropout.on()) return copy_rows(x, nullptr, y, begin, end);
    HWY_DYNAMIC_DISPATCH(dropout_rows)(x, dropout, names, y, begin, end);
  });
}

void CpuBackend::add(Tensor x, Tensor y) {
  FINETUNE_CHECK(y.rows == x.rows && y.cols == x.cols);
  cpu::for_ranges(x.rows, cpu::row_grain(x.cols), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      HWY_DYNAMIC_DISPATCH(add_row)(x.f32() + r * x.stride, y.f32() + r * y.stride, x.cols);
    }
  });
}

void CpuBackend::gather_rows(Tensor x, const int32_t* index, Tensor y) {
  FINETUNE_CHECK(y.cols == x.cols);
  cpu::for_ranges(y.rows, cpu::row_grain(y.cols),
                  [&](int64_t begin, int64_t end) { copy_rows(x, index, y, begin, end); });
}

void CpuBackend::scatter_rows_add(Tensor dy, const int32_t* index, Tensor x) {
  FINETUNE_CHECK(x.cols == dy.cols);
  cpu::for_ranges(dy.rows, cpu::row_grain(dy.cols), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      HWY_DYNAMIC_DISPATCH(add_row)
      (dy.f32() + r * dy.stride, x.f32() + index[r] * x.stride, dy.cols);
    }
  });
}

void CpuBackend::scatter_rows(Tensor x, const int32_t* index, Tensor y) {
  FINETUNE_CHECK(y.cols == x.cols);
  cpu::for_ranges(x.rows, cpu::row_grain(x.cols), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      std::memmove(y.f32() + index[r] * y.stride, x.f32() + r * x.stride,
                   size_t(x.cols) * sizeof(float));
    }
  });
}

}  // namespace finetune
#endif
