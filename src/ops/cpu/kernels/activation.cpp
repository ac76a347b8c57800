// GELU (exact and tanh), ReLU, SiLU and tanh with their derivatives, on vectors.
#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/kernels/activation.cpp"
#include "hwy/foreach_target.h"
#include "ops/cpu/kernels/activation-inl.h"
#include "ops/cpu/kernels/activation.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {
namespace {

template <Activation kKind, class T>
void forward_row(const T* x, T* y, int64_t count) {
  for_lanes(count, [=](auto d, int64_t i) HWY_ATTR {
    prefetch_ahead(i, x, y);
    store_as(d, value<kKind>(d, load_as(d, x + i)), y + i);
  });
}

// y may be null.
template <Activation kKind, class T>
void backward_row(const T* x, const T* dy, T* dx, T* y, int64_t count) {
  for_lanes(count, [=](auto d, int64_t i) HWY_ATTR {
    prefetch_ahead(i, x, dy);
    const auto v = load_as(d, x + i);
    store_as(d, hn::Mul(load_as(d, dy + i), derivative<kKind>(d, v)), dx + i);
    if (y) store_as(d, value<kKind>(d, v), y + i);
  });
}

template <Activation kKind, class T>
struct TypedRows {
  static void run(const cpu::ActivationCall& call, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* x = cpu::row_of<T>(call.x, r);
      T* y = cpu::row_of<T>(call.y, r);
      if (call.dy) {
        backward_row<kKind>(x, cpu::row_of<T>(call.dy, r), cpu::row_of<T>(call.dx, r), y,
                            call.x.cols);
      } else {
        forward_row<kKind>(x, y, call.x.cols);
      }
    }
  }
};

void activation_rows(const cpu::ActivationCall& call, int64_t begin, int64_t end) {
  run_rows<TypedRows>(call, begin, end);
}

}  // namespace
}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/tasks.h"

namespace finetune {
HWY_EXPORT(activation_rows);

namespace {

void over_rows(const cpu::ActivationCall& call) {
  const Tensor x = call.x;
  for (Tensor t : {call.dy, call.dx, call.y}) {
    FINETUNE_CHECK(!t || (t.rows == x.rows && t.cols == x.cols && t.dtype == x.dtype));
  }
  const bool in_bf16 =
      x.dtype == DType::bf16 && multiplies_bf16(select_isa()) && cpu::has_bf16_activation(call.f);
  const auto rows = in_bf16 ? cpu::bf16_activation_rows : HWY_DYNAMIC_DISPATCH(activation_rows);
  cpu::for_ranges(x.rows, cpu::row_grain(x.cols),
                  [&](int64_t begin, int64_t end) { rows(call, begin, end); });
}

}  // namespace

void CpuBackend::activation(Activation f, Tensor x, Tensor y) {
  over_rows({f, x, {}, {}, y});
}

void CpuBackend::activation_backward(Activation f, Tensor x, Tensor dy, Tensor dx, Tensor y,
                                     Tensor sums, bool /*accumulate*/) {
  FINETUNE_CHECK(!sums);
  over_rows({f, x, dy, dx, y});
}

}  // namespace finetune
#endif
