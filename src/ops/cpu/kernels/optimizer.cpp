// The gradient norm's block sums and AdamW: dense, by parts and by rows.
#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/kernels/optimizer.cpp"
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "hwy/foreach_target.h"
#include "ops/backend.h"
#include "ops/cpu/kernels/optimizer.h"
#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {
namespace {

using cpu::AdamWFactors;

// The square sum of elements [begin, end) of an arena. Squares are exact in double; several sums
// hide the latency of addition. The lane of an element depends only on its place in the block, and
// adding 0 changes nothing, so groups known to be zero are skipped.
double square_sum(const float* arena, const SparseRows& sparse, int64_t begin, int64_t end) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  constexpr int64_t kStep = kLanes / 2, kGroup = 2 * kSumLanes;
  constexpr int64_t kSums = kGroup / kStep;
  const float* x = arena + begin;
  const int64_t count = end - begin, whole = count / kGroup * kGroup;
  hn::Vec<decltype(d)> sums[kSums];
  for (auto& sum : sums) sum = hn::Zero(d);
  int64_t done = 0;
  auto add_groups = [&](int64_t from, int64_t to) HWY_ATTR {
    int64_t i = HWY_MAX(done, from / kGroup * kGroup);
    for (; i < whole && i < to; i += kGroup) {
      for (int64_t k = 0; k < kGroup; k += kLine) prefetch_ahead(i + k, x);
      for (int64_t k = 0; k < kSums; ++k) {
        const auto v = hn::PromoteTo(d, hn::LoadU(half, x + i + k * kStep));
        sums[k] = hn::MulAdd(v, v, sums[k]);
      }
      done = i + kGroup;
    }
  };
  if (sparse.cols == 0) {
    add_groups(0, count);
  } else {
    if (begin < sparse.first) add_groups(0, sparse.first - begin);
    const int32_t* const rows = sparse.nonzero.rows;
    const int32_t* const last = rows + sparse.nonzero.count;
    const int32_t first = int32_t(HWY_MAX(0, begin - sparse.first) / sparse.cols);
    for (const int32_t* row = std::lower_bound(rows, last, first); row != last; ++row) {
      const int64_t start = sparse.first + *row * sparse.cols;
      if (start >= end) break;
      add_groups(HWY_MAX(0, start - begin), start + sparse.cols - begin);
    }
  }
  // Adds halves to each other: first of the group, then of a vector.
  for (int64_t left = kSums / 2; left > 0; left /= 2) {
    for (int64_t k = 0; k < left; ++k) sums[k] = hn::Add(sums[k], sums[k + left]);
  }
  double total = sum_of<kStep>(sums[0]);
  for (int64_t i = whole; i < count; ++i) total += double(x[i]) * double(x[i]);
  return total;
}

template <class D, class V>
HWY_INLINE void update_moments(D d, const AdamWFactors& f, V g, V& m, V& v) {
  m = hn::MulAdd(hn::Set(d, f.beta1), m, hn::Mul(hn::Set(d, f.rest1), g));
  v = hn::MulAdd(hn::Set(d, f.beta2), v, hn::Mul(hn::Mul(hn::Set(d, f.rest2), g), g));
}

template <class D, class V>
HWY_INLINE V moved(D d, const AdamWFactors& f, V p, V m, V v) {
  const V size = hn::MulAdd(hn::Sqrt(v), hn::Set(d, f.root), hn::Set(d, f.epsilon));
  p = hn::Mul(p, hn::Set(d, f.decay));
  return hn::NegMulAdd(hn::Set(d, f.rate), hn::Div(m, size), p);
}

// Prefetches `ahead` elements ahead.
void adamw_range(const AdamWFactors& f, float* parameter, const float* gradient, float* m, float* v,
                 int64_t count, int64_t ahead) {
  for_lanes(count, [&](auto d, int64_t i) HWY_ATTR {
    prefetch_beyond(i, ahead, parameter, gradient, m, v);
    const auto g = hn::Mul(hn::Set(d, f.scale), hn::LoadU(d, gradient + i));
    auto first = hn::LoadU(d, m + i);
    auto second = hn::LoadU(d, v + i);
    update_moments(d, f, g, first, second);
    const auto p = hn::LoadU(d, parameter + i);
    hn::StoreU(first, d, m + i);
    hn::StoreU(second, d, v + i);
    hn::StoreU(moved(d, f, p, first, second), d, parameter + i);
  });
}

// False for -0: its sign can matter to a parameter that is -0.
template <class D, class V>
HWY_INLINE bool all_bits_zero(D, V x) {
  const hn::RebindToSigned<D> di;
  return hn::AllTrue(di, hn::Eq(hn::BitCast(di, x), hn::Zero(di)));
}

bool without_moments(const float* m, const float* v, int64_t count) {
  bool none = true;
  for_lanes(count, [&](auto d, int64_t i) HWY_ATTR {
    none = none && all_bits_zero(d, hn::Or(hn::LoadU(d, m + i), hn::LoadU(d, v + i)));
  });
  return none;
}

// Multiplications depend on each other, so four vectors are processed at a time.
void decay_range(const AdamWFactors* steps, int64_t missed, float* parameter, int64_t count) {
  const Floats d;
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    auto a = hn::LoadU(d, parameter + i), b = hn::LoadU(d, parameter + i + kLanes);
    auto c = hn::LoadU(d, parameter + i + 2 * kLanes), e = hn::LoadU(d, parameter + i + 3 * kLanes);
    for (int64_t k = 0; k < missed; ++k) {
      const auto decay = hn::Set(d, steps[k].decay);
      a = hn::Mul(a, decay);
      b = hn::Mul(b, decay);
      c = hn::Mul(c, decay);
      e = hn::Mul(e, decay);
    }
    hn::StoreU(a, d, parameter + i);
    hn::StoreU(b, d, parameter + i + kLanes);
    hn::StoreU(c, d, parameter + i + 2 * kLanes);
    hn::StoreU(e, d, parameter + i + 3 * kLanes);
  }
  for_lanes(count - i, [=](auto tag, int64_t rest) HWY_ATTR {
    auto p = hn::LoadU(tag, parameter + i + rest);
    for (int64_t k = 0; k < missed; ++k) p = hn::Mul(p, hn::Set(tag, steps[k].decay));
    hn::StoreU(p, tag, parameter + i + rest);
  });
}

// Applies `missed` steps with a zero gradient.
void catch_up_range(const AdamWFactors* steps, int64_t missed, float* parameter, float* m, float* v,
                    int64_t count) {
  const bool rests =
      std::all_of(steps, steps + missed, [](const AdamWFactors& f) { return f.rests_on_zero; });
  if (rests && without_moments(m, v, count)) return decay_range(steps, missed, parameter, count);
  for_lanes(count, [=](auto d, int64_t i) HWY_ATTR {
    auto p = hn::LoadU(d, parameter + i);
    auto first = hn::LoadU(d, m + i);
    auto second = hn::LoadU(d, v + i);
    for (int64_t k = 0; k < missed; ++k) {
      const AdamWFactors& f = steps[k];
      update_moments(d, f, hn::Zero(d), first, second);
      // Hundreds of steps after a row's last gradient, m has become zero: no division is needed.
      p = rests && all_bits_zero(d, first) ? hn::Mul(p, hn::Set(d, f.decay))
                                           : moved(d, f, p, first, second);
    }
    hn::StoreU(p, d, parameter + i);
    hn::StoreU(first, d, m + i);
    hn::StoreU(second, d, v + i);
  });
}

}  // namespace
}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cstring>

#include "core/numeric/tree_sum.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/tasks.h"

namespace finetune {
HWY_EXPORT(square_sum);
HWY_EXPORT(adamw_range);
HWY_EXPORT(catch_up_range);

namespace cpu {

AdamWFactors::AdamWFactors(const AdamW& o)
    : scale(o.gradient_scale),
      beta1(o.beta1),
      rest1(float(1.0 - double(o.beta1))),
      beta2(o.beta2),
      rest2(float(1.0 - double(o.beta2))),
      decay(float(1.0 - double(o.learning_rate) * double(o.weight_decay))),
      epsilon(o.epsilon) {
  const double correction1 = 1.0 - std::pow(double(o.beta1), double(o.step));
  const double correction2 = 1.0 - std::pow(double(o.beta2), double(o.step));
  rate = float(double(o.learning_rate) / correction1);
  root = float(1.0 / std::sqrt(correction2));
  rests_on_zero = std::isfinite(rate) && rate >= 0 && std::isfinite(root) && epsilon >= FLT_MIN;
}

}  // namespace cpu

namespace {

constexpr int64_t kUpdateGrain = 1 << 14;  // elements per task

// Returns false if nothing is to be updated.
bool take_outcome(const AdamW& options, cpu::AdamWFactors& factors) {
  if (!options.outcome) return true;
  factors.scale = options.outcome->gradient_scale;
  return options.outcome->finite != 0;
}

void check_rows(Tensor parameter, std::initializer_list<Tensor> others) {
  FINETUNE_CHECK(parameter.contiguous());
  for (Tensor t : others) {
    FINETUNE_CHECK(t.contiguous() && t.rows == parameter.rows && t.cols == parameter.cols);
  }
}

}  // namespace

void CpuBackend::block_square_sums(Tensor x, int64_t block, const SparseRows& sparse,
                                   double* sums) {
  FINETUNE_CHECK(x.rows == 1);
  cpu::for_ranges(x.cols, block, [&](int64_t begin, int64_t end) {
    sums[begin / block] = HWY_DYNAMIC_DISPATCH(square_sum)(x.f32(), sparse, begin, end);
  });
}

void CpuBackend::add_losses(Tensor losses, Tensor weights, bool accumulate, double* sum) {
  FINETUNE_CHECK(losses.rows == 1);
  FINETUNE_CHECK(!weights || weights.size() == losses.cols);
  double total = accumulate ? *sum : 0.0;
  for (int64_t i = 0; i < losses.cols; ++i) {
    total += (weights ? double(weights.f32()[i]) : 1.0) * double(losses.f32()[i]);
  }
  *sum = total;
}

void CpuBackend::step_outcome(const StepSums& s, StepOutcome* outcome) {
  *outcome = StepOutcome::of(tree_sum(s.losses, s.shards) / s.denominator,
                             std::sqrt(tree_sum(s.squares, s.blocks)), s.max_norm, s.stop_requests,
                             s.processes);
}

void CpuBackend::adamw(const AdamW& options, Tensor parameter, Tensor gradient, Tensor m,
                       Tensor v) {
  const AdamWPart whole = {options, 0, parameter.cols};
  adamw_parts({&whole, 1}, parameter, gradient, m, v);
}

void CpuBackend::adamw_parts(std::span<const AdamWPart> parts, Tensor parameter, Tensor gradient,
                             Tensor m, Tensor v) {
  for (Tensor t : {parameter, gradient, m, v}) {
    FINETUNE_CHECK(t.rows == 1 && t.cols == parameter.cols);
  }
  const bool packs = compute_ == DType::bf16 && multiplies_bf16(select_isa());
  int64_t tasks = 0;
  updated_parts_.clear();
  for (const AdamWPart& part : parts) {
    FINETUNE_CHECK(part.begin >= 0 && part.begin + part.count <= parameter.cols);
    cpu::AdamWFactors factors(part.options);
    if (!take_outcome(part.options, factors)) return;
    const int64_t rows = part.cols > 0 ? part.count / part.cols : 0;
    FINETUNE_CHECK(part.cols == 0 || rows * part.cols == part.count);
    const bool packed =
        packs && rows > 0 && cpu::PackedWeights::fits(rows, part.cols, gradient.f32() + part.begin);
    const int64_t grain = packed ? cpu::PackedWeights::kGroup * part.cols : kUpdateGrain;
    updated_parts_.push_back(
        {factors, part.begin, part.count, grain, tasks, packed ? part.cols : 0});
    tasks += (part.count + grain - 1) / grain;
  }
  for (const cpu::UpdatedPart& part : updated_parts_) {
    float* const w = parameter.f32() + part.begin;
    if (part.cols > 0) {
      packed_.pack(w, part.count / part.cols, part.cols, gradient.f32() + part.begin);
    } else {
      packed_.written(vector(w, part.count));
    }
  }
  cpu::for_tasks(tasks, [&](int64_t task) {
    const auto after = [](int64_t t, const cpu::UpdatedPart& part) { return t < part.first_task; };
    const cpu::UpdatedPart& part =
        *--std::upper_bound(updated_parts_.begin(), updated_parts_.end(), task, after);
    const int64_t done = (task - part.first_task) * part.grain, at = part.begin + done;
    HWY_DYNAMIC_DISPATCH(adamw_range)
    (part.factors, parameter.f32() + at, gradient.f32() + at, m.f32() + at, v.f32() + at,
     std::min(part.grain, part.count - done), cpu::kAhead);
    if (part.cols > 0) {
      cpu::pack_weight_group(parameter.f32() + at, part.cols,
                             reinterpret_cast<uint16_t*>(gradient.f32() + at));
    }
  });
}

void CpuBackend::adamw_rows(const AdamW& options, RowList rows, Tensor parameter, Tensor gradient,
                            Tensor m, Tensor v) {
  check_rows(parameter, {gradient, m, v});
  packed_.written(parameter);
  cpu::AdamWFactors factors(options);
  if (!take_outcome(options, factors)) return;
  const int64_t n = parameter.cols;
  cpu::for_ranges(rows.count, cpu::row_grain(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = rows.rows[i] * n, next = i + 1 < end ? rows.rows[i + 1] * n : at;
      HWY_DYNAMIC_DISPATCH(adamw_range)
      (factors, parameter.f32() + at, gradient.f32() + at, m.f32() + at, v.f32() + at, n,
       next - at);
      std::memset(gradient.f32() + at, 0, size_t(n) * sizeof(float));
    }
  });
}

void CpuBackend::adamw_catch_up(std::span<const AdamW> steps, RowList rows, const int32_t* missed,
                                Tensor parameter, Tensor m, Tensor v) {
  check_rows(parameter, {m, v});
  packed_.written(parameter);
  missed_steps_.clear();
  for (const AdamW& step : steps) missed_steps_.emplace_back(step);
  const int64_t n = parameter.cols;
  cpu::for_ranges(rows.count, cpu::row_grain(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      FINETUNE_CHECK(missed[i] >= 0 && size_t(missed[i]) <= missed_steps_.size());
      const int64_t at = rows.rows[i] * n;
      HWY_DYNAMIC_DISPATCH(catch_up_range)
      (missed_steps_.data() + missed_steps_.size() - missed[i], missed[i], parameter.f32() + at,
       m.f32() + at, v.f32() + at, n);
    }
  });
}

}  // namespace finetune
#endif
