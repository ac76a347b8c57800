#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/optimizer.cpp"
#include <cmath>

#include "hwy/foreach_target.h"
#include "ops/backend.h"
#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {
namespace {

// Squares are exact in double; four sums hide the latency of addition.
double square_sum(const float* x, int64_t count) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const int64_t step = int64_t(hn::Lanes(d));
  hn::Vec<decltype(d)> sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  int64_t i = 0;
  for (; i + 4 * step <= count; i += 4 * step) {
    for (int k = 0; k < 4; ++k) {
      const auto v = hn::PromoteTo(d, hn::LoadU(half, x + i + k * step));
      sums[k] = hn::MulAdd(v, v, sums[k]);
    }
  }
  const auto both = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  double total = hn::GetLane(hn::SumOfLanes(d, both));
  for (; i < count; ++i) total += double(x[i]) * double(x[i]);
  return total;
}

// Factors that depend on the step alone are worked out in double.
void adamw_range(const AdamW& o, float* parameter, float* gradient, float* m, float* v,
                 int64_t count) {
  const double correction1 = 1.0 - std::pow(double(o.beta1), double(o.step));
  const double correction2 = 1.0 - std::pow(double(o.beta2), double(o.step));
  const float decay = float(1.0 - double(o.learning_rate) * double(o.weight_decay));
  const float rate = float(double(o.learning_rate) / correction1);
  const float root = float(1.0 / std::sqrt(correction2));
  const float rest1 = float(1.0 - double(o.beta1));
  const float rest2 = float(1.0 - double(o.beta2));
  for_lanes(count, [&](auto d, int64_t i) HWY_ATTR {
    const auto g = hn::Mul(hn::Set(d, o.gradient_scale), hn::LoadU(d, gradient + i));
    const auto first =
        hn::MulAdd(hn::Set(d, o.beta1), hn::LoadU(d, m + i), hn::Mul(hn::Set(d, rest1), g));
    const auto second = hn::MulAdd(hn::Set(d, o.beta2), hn::LoadU(d, v + i),
                                   hn::Mul(hn::Mul(hn::Set(d, rest2), g), g));
    const auto size = hn::MulAdd(hn::Sqrt(second), hn::Set(d, root), hn::Set(d, o.epsilon));
    const auto p = hn::Mul(hn::LoadU(d, parameter + i), hn::Set(d, decay));
    hn::StoreU(first, d, m + i);
    hn::StoreU(second, d, v + i);
    hn::StoreU(hn::NegMulAdd(hn::Set(d, rate), hn::Div(first, size), p), d, parameter + i);
    hn::StoreU(hn::Zero(d), d, gradient + i);
  });
}

}  // namespace
}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/tasks.h"

namespace finetune {
HWY_EXPORT(square_sum);
HWY_EXPORT(adamw_range);

void CpuBackend::block_square_sums(Tensor x, double* sums) {
  FINETUNE_CHECK(x.rows == 1);
  cpu::for_ranges(x.cols, kNormBlock, [&](int64_t begin, int64_t end) {
    sums[begin / kNormBlock] = HWY_DYNAMIC_DISPATCH(square_sum)(x.f32() + begin, end - begin);
  });
}

void CpuBackend::adamw(const AdamW& options, Tensor parameter, Tensor gradient, Tensor m,
                       Tensor v) {
  const int64_t n = parameter.cols;
  for (Tensor t : {parameter, gradient, m, v}) FINETUNE_CHECK(t.rows == 1 && t.cols == n);
  cpu::for_ranges(n, 1 << 14, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(adamw_range)
    (options, parameter.f32() + begin, gradient.f32() + begin, m.f32() + begin, v.f32() + begin,
     end - begin);
  });
}

}  // namespace finetune
#endif
