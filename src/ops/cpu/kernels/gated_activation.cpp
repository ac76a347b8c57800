// Gated activations f(u) * g, with dropout, and their gradients, on vectors.
#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/kernels/gated_activation.cpp"
#include "hwy/foreach_target.h"
#include "ops/cpu/kernels/activation-inl.h"
#include "ops/cpu/kernels/activation.h"
#include "ops/cpu/kernels/dropout-inl.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {
namespace {

template <Activation kKind, class T>
void forward_row(const T* u, const T* g, const float* factors, T* y, int64_t count) {
  for_lanes(count, [=](auto d, int64_t i) HWY_ATTR {
    prefetch_ahead(i, u, g);
    auto v = hn::Mul(value<kKind>(d, load_as(d, u + i)), load_as(d, g + i));
    if (factors) v = hn::Mul(v, hn::LoadU(d, factors + i));
    store_as(d, v, y + i);
  });
}

// du and dg may be u and g, y may be dy.
template <Activation kKind, class T>
void backward_row(const T* u, const T* g, const T* dy, const float* factors, T* du, T* dg, T* y,
                  int64_t count) {
  for_lanes(count, [=](auto d, int64_t i) HWY_ATTR {
    prefetch_ahead(i, u, g, dy);
    const auto x = load_as(d, u + i), gate = load_as(d, g + i), f = value<kKind>(d, x);
    auto gradient = load_as(d, dy + i), v = hn::Mul(f, gate);
    if (factors) {
      const auto kept = hn::LoadU(d, factors + i);
      gradient = hn::Mul(gradient, kept);
      v = hn::Mul(v, kept);
    }
    store_as(d, hn::Mul(hn::Mul(gradient, gate), derivative<kKind>(d, x)), du + i);
    store_as(d, hn::Mul(gradient, f), dg + i);
    store_as(d, v, y + i);
  });
}

template <Activation kKind, class T>
struct TypedRows {
  static void run(const cpu::GatedCall& call, int64_t begin, int64_t end) {
    const int64_t n = call.y.cols;
    const Dropout& dropout = call.dropout;
    float* buffer = cpu::scratch(cpu::Scratch::task, dropout.on() ? n + 2 * kDropoutGroup : 0);
    for (int64_t r = begin; r < end; ++r) {
      const float* factors = dropout.on()
                                 ? dropout_range(dropout, call.names.position[r],
                                                 call.names.sample[r], call.first_column, n, buffer)
                                 : nullptr;
      const T* u = cpu::row_of<T>(call.x, r);
      T* y = cpu::row_of<T>(call.y, r);
      if (call.dy) {
        T* du = cpu::row_of<T>(call.dx, r);
        backward_row<kKind>(u, u + n, cpu::row_of<T>(call.dy, r), factors, du, du + n, y, n);
      } else {
        forward_row<kKind>(u, u + n, factors, y, n);
      }
    }
  }
};

void gated_rows(const cpu::GatedCall& call, int64_t begin, int64_t end) {
  run_rows<TypedRows>(call, begin, end);
}

}  // namespace
}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/tasks.h"

namespace finetune {
HWY_EXPORT(gated_rows);

namespace {

void over_rows(const cpu::GatedCall& call) {
  const Tensor x = call.x, y = call.y;
  FINETUNE_CHECK(x.rows == y.rows && x.cols == 2 * y.cols && x.dtype == y.dtype);
  FINETUNE_CHECK(!call.dy || (call.dy.cols == y.cols && call.dy.dtype == y.dtype));
  FINETUNE_CHECK(!call.dx || (call.dx.cols == x.cols && call.dx.dtype == y.dtype));
  cpu::for_ranges(x.rows, cpu::row_grain(x.cols), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(gated_rows)(call, begin, end);
  });
}

}  // namespace

void CpuBackend::gated_activation(Activation f, Tensor x, Dropout dropout, RowNames names,
                                  int64_t first_column, Tensor y) {
  over_rows({f, x, {}, dropout.taken(), names, first_column, {}, y});
}

void CpuBackend::gated_activation_backward(Activation f, Tensor x, Tensor dy, Dropout dropout,
                                           RowNames names, int64_t first_column, Tensor dx,
                                           Tensor y) {
  over_rows({f, x, dy, dropout.taken(), names, first_column, dx, y});
}

}  // namespace finetune
#endif
