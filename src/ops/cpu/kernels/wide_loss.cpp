// Cross entropy over many classes (a vocabulary), with float vectors.
#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/kernels/wide_loss.cpp"
#include <cmath>

#include "hwy/foreach_target.h"
#include "ops/cpu/kernels/wide_loss.h"
#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {
namespace {

constexpr int64_t kBlock = 1024;  // classes summed in float

float largest_of(const float* x, int64_t count) {
  auto most = hn::Set(Floats(), x[0]);
  float of_tail = x[0];
  for_lanes(count, [&](auto d, int64_t i) HWY_ATTR {
    if constexpr (hn::MaxLanes(d) == 1) {
      of_tail = HWY_MAX(of_tail, x[i]);
    } else {
      most = hn::Max(most, hn::LoadU(d, x + i));
    }
  });
  return HWY_MAX(of_tail, hn::GetLane(hn::MaxOfLanes(Floats(), most)));
}

// The sum of exp(x - largest); the terms are written to `out` if given.
double sum_of_exponentials(const float* x, float largest, float* out, int64_t count) {
  double total = 0;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    LaneSum sum;
    for_lanes(HWY_MIN(kBlock, count - begin), [&](auto d, int64_t i) HWY_ATTR {
      const auto e = exp_of(d, hn::Sub(hn::LoadU(d, x + begin + i), hn::Set(d, largest)));
      if (out) hn::StoreU(e, d, out + begin + i);
      sum.add(d, e);
    });
    total += double(sum.total());
  }
  return total;
}

// If a row's maximum is NaN, so is its loss.
float wide_loss_row(const float* x, int64_t classes, int32_t label, float scale, float* dx) {
  const float largest = largest_of(x, classes), own = x[label];
  const double sum = sum_of_exponentials(x, largest, dx, classes);
  const double log_probability = double(own) - double(largest) - std::log(sum);
  if (dx) {
    const auto factor = float(double(scale) / sum);
    for_lanes(classes, [&](auto d, int64_t i) HWY_ATTR {
      hn::StoreU(hn::Mul(hn::LoadU(d, dx + i), hn::Set(d, factor)), d, dx + i);
    });
    dx[label] = float(double(scale) * std::expm1(log_probability));
  }
  return float(-log_probability);
}

}  // namespace
}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace finetune {
HWY_EXPORT(wide_loss_row);

float cpu::wide_loss(const float* x, int64_t classes, int32_t label, float scale, float* dx) {
  return HWY_DYNAMIC_DISPATCH(wide_loss_row)(x, classes, label, scale, dx);
}

}  // namespace finetune
#endif
