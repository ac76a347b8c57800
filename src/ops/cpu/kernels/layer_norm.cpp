// Dropout, residual and layer normalisation in one pass, and its backward pass.
#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/kernels/layer_norm.cpp"
#include <algorithm>
#include <cmath>

#include "hwy/foreach_target.h"
#include "ops/backend.h"
#include "ops/cpu/kernels/dropout-inl.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {
namespace {

// Calls body(begin, count, factors) over pieces of a row of n elements, with the piece's dropout
// factors (null if dropout is off).
template <class Body>
HWY_INLINE void for_dropout_pieces(const Dropout& dropout, RowNames names, int64_t row, int64_t n,
                                   const Body& body) {
  if (!dropout.on()) return body(int64_t{0}, n, static_cast<const float*>(nullptr));
  HWY_ALIGN float factors[kDropoutGroup];
  for (int64_t c = 0; c < n; c += kDropoutGroup) {
    dropout_group(dropout, names.position[row], names.sample[row], uint32_t(c / kDropoutGroup),
                  factors);
    body(c, HWY_MIN(kDropoutGroup, n - c), static_cast<const float*>(factors));
  }
}

void layer_norm_rows(Tensor x, Tensor residual, const Dropout& dropout, RowNames names,
                     Tensor gamma, Tensor beta, float epsilon, Tensor s, Tensor stats, Tensor y,
                     Tensor rounded, int64_t begin, int64_t end) {
  const int64_t n = x.cols;
  const float* g = gamma.f32();
  const float* b = beta ? beta.f32() : nullptr;
  for (int64_t r = begin; r < end; ++r) {
    const float* from = x.f32() + r * x.stride;
    const float* rest = residual ? residual.f32() + r * residual.stride : nullptr;
    float* out = y.f32() + r * y.stride;
    float* sum_row = s ? s.f32() + r * s.stride : out;
    bfloat16* copy = rounded ? rounded.as<bfloat16>() + r * rounded.stride : nullptr;

    LaneSum sum;
    for_dropout_pieces(dropout, names, r, n,
                       [&](int64_t c, int64_t count, const float* factors) HWY_ATTR {
                         for_lanes(count, [&](auto d, int64_t i) HWY_ATTR {
                           prefetch_ahead(c + i, from);
                           if (rest) prefetch_ahead(c + i, rest);
                           prefetch_beyond(c + i, 0, out);  // written once the sums are known
                           if (copy) prefetch_beyond(c + i, 0, copy);
                           auto v = hn::LoadU(d, from + c + i);
                           if (factors) v = hn::Mul(v, hn::LoadU(d, factors + i));
                           if (rest) v = hn::Add(v, hn::LoadU(d, rest + c + i));
                           hn::StoreU(v, d, sum_row + c + i);
                           sum.add(d, v);
                         });
                       });
    const float mean = sum.total() / float(n);

    LaneSum squares;
    for_lanes(n, [&](auto d, int64_t i) HWY_ATTR {
      const auto v = hn::Sub(hn::LoadU(d, sum_row + i), hn::Set(d, mean));
      squares.add(d, hn::Mul(v, v));
    });
    // In double, because its error affects every element of the row.
    const float inverse =
        float(1.0 / std::sqrt(double(squares.total()) / double(n) + double(epsilon)));

    for_lanes(n, [&](auto d, int64_t i) HWY_ATTR {
      const auto v = hn::Sub(hn::LoadU(d, sum_row + i), hn::Set(d, mean));
      const auto h = hn::Mul(v, hn::Set(d, inverse));
      const auto scale = hn::LoadU(d, g + i);
      const auto result = b ? hn::MulAdd(h, scale, hn::LoadU(d, b + i)) : hn::Mul(h, scale);
      hn::StoreU(result, d, out + i);
      if (copy) store_as(d, result, copy + i);
    });
    if (stats) {
      stats.f32()[r * stats.stride] = mean;
      stats.f32()[r * stats.stride + 1] = inverse;
    }
  }
}

// With h = (s - mean) * inverse and g = dy * gamma: ds = inverse * (g - mean(g) - h * mean(g * h)).
// sums (2, n) accumulates the rows' dgamma and dbeta. dx has type T.
template <class T>
void typed_backward_rows(Tensor dy, Tensor s, Tensor stats, Tensor gamma, const Dropout& dropout,
                         RowNames names, Tensor ds, Tensor dx, float* sums, int64_t begin,
                         int64_t end) {
  const int64_t n = s.cols;
  const float* weights = gamma.f32();
  float* dgamma = sums;
  float* dbeta = sums + n;
  for (int64_t i = 0; i < 2 * n; ++i) sums[i] = 0;
  for (int64_t r = begin; r < end; ++r) {
    const float* gradient = dy.f32() + r * dy.stride;
    const float* value = s.f32() + r * s.stride;
    const float mean = stats.f32()[r * stats.stride];
    const float inverse = stats.f32()[r * stats.stride + 1];

    float* out = ds.f32() + r * ds.stride;
    T* branch = dx && dx.data != ds.data ? dx.as<T>() + r * dx.stride : nullptr;
    LaneSum sum_g, sum_gh;
    for_lanes(n, [&](auto d, int64_t i) HWY_ATTR {
      prefetch_ahead(i, gradient, value);
      if (branch) prefetch_beyond(i, 0, branch);
      const auto v = hn::LoadU(d, gradient + i);
      const auto h =
          hn::Mul(hn::Sub(hn::LoadU(d, value + i), hn::Set(d, mean)), hn::Set(d, inverse));
      const auto g = hn::Mul(v, hn::LoadU(d, weights + i));
      sum_g.add(d, g);
      sum_gh.add(d, hn::Mul(g, h));
      hn::StoreU(hn::MulAdd(v, h, hn::LoadU(d, dgamma + i)), d, dgamma + i);
      hn::StoreU(hn::Add(v, hn::LoadU(d, dbeta + i)), d, dbeta + i);
    });
    const float mean_g = sum_g.total() / float(n);
    const float mean_gh = sum_gh.total() / float(n);

    for_dropout_pieces(
        dropout, names, r, n, [&](int64_t c, int64_t count, const float* factors) HWY_ATTR {
          for_lanes(count, [&](auto d, int64_t i) HWY_ATTR {
            const auto h = hn::Mul(hn::Sub(hn::LoadU(d, value + c + i), hn::Set(d, mean)),
                                   hn::Set(d, inverse));
            const auto g = hn::Mul(hn::LoadU(d, gradient + c + i), hn::LoadU(d, weights + c + i));
            const auto centred =
                hn::NegMulAdd(h, hn::Set(d, mean_gh), hn::Sub(g, hn::Set(d, mean_g)));
            const auto v = hn::Mul(centred, hn::Set(d, inverse));
            hn::StoreU(v, d, out + c + i);
            if (branch) {
              store_as(d, factors ? hn::Mul(v, hn::LoadU(d, factors + i)) : v, branch + c + i);
            }
          });
        });
  }
}

void layer_norm_backward_rows(Tensor dy, Tensor s, Tensor stats, Tensor gamma,
                              const Dropout& dropout, RowNames names, Tensor ds, Tensor dx,
                              float* sums, int64_t begin, int64_t end) {
  const auto rows =
      dx && dx.dtype == DType::bf16 ? typed_backward_rows<bfloat16> : typed_backward_rows<float>;
  rows(dy, s, stats, gamma, dropout, names, ds, dx, sums, begin, end);
}

void add_strip(const float* x, float* y, int64_t count) {
  add_to(x, y, count);
}

}  // namespace
}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/tasks.h"

namespace finetune {
HWY_EXPORT(layer_norm_rows);
HWY_EXPORT(layer_norm_backward_rows);
HWY_EXPORT(add_strip);

namespace {

bool same_shape(Tensor a, Tensor b) {
  return a.rows == b.rows && a.cols == b.cols;
}

}  // namespace

void CpuBackend::add_layer_norm(Tensor x, Tensor residual, Dropout dropout, RowNames names,
                                Tensor gamma, Tensor beta, float epsilon, Tensor s, Tensor stats,
                                Tensor y, Tensor rounded) {
  dropout = dropout.taken();
  FINETUNE_CHECK(same_shape(x, y) && gamma.size() == x.cols);
  FINETUNE_CHECK(!beta || beta.size() == x.cols);
  FINETUNE_CHECK(!residual || same_shape(x, residual));
  FINETUNE_CHECK(!s || same_shape(x, s));
  FINETUNE_CHECK(!stats || (stats.rows == x.rows && stats.cols == 2));
  FINETUNE_CHECK(!rounded || same_shape(x, rounded));
  cpu::for_ranges(x.rows, cpu::row_grain(x.cols), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(layer_norm_rows)
    (x, residual, dropout, names, gamma, beta, epsilon, s, stats, y, rounded, begin, end);
  });
}

void CpuBackend::add_layer_norm_backward(Tensor dy, Tensor s, Tensor stats, Tensor gamma,
                                         Dropout dropout, RowNames names, Tensor ds, Tensor dx,
                                         Tensor dgamma, Tensor dbeta, bool accumulate,
                                         Tensor dx_sums) {
  FINETUNE_CHECK(!dx_sums);
  dropout = dropout.taken();
  const int64_t n = s.cols;
  FINETUNE_CHECK(same_shape(dy, s) && same_shape(ds, s) && stats.rows == s.rows && stats.cols == 2);
  FINETUNE_CHECK(gamma.size() == n && dgamma.size() == n);
  FINETUNE_CHECK(!dbeta || dbeta.size() == n);
  FINETUNE_CHECK(!dx || (same_shape(dx, s) && (dx.data != ds.data || !dropout.on())));
  // Each block of rows has its own dgamma and dbeta sums, which are added in the order of the
  // blocks.
  constexpr int64_t kBlock = 32;
  const int64_t blocks = (s.rows + kBlock - 1) / kBlock;
  float* sums = cpu::scratch(cpu::Scratch::operation, blocks * 2 * n);
  cpu::for_ranges(s.rows, kBlock, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(layer_norm_backward_rows)
    (dy, s, stats, gamma, dropout, names, ds, dx, sums + begin / kBlock * 2 * n, begin, end);
  });
  cpu::for_ranges(n, 256, [&](int64_t begin, int64_t end) {
    if (!accumulate) {
      std::fill(dgamma.f32() + begin, dgamma.f32() + end, 0.0f);
      if (dbeta) std::fill(dbeta.f32() + begin, dbeta.f32() + end, 0.0f);
    }
    for (int64_t block = 0; block < blocks; ++block) {
      const float* part = sums + block * 2 * n;
      HWY_DYNAMIC_DISPATCH(add_strip)(part + begin, dgamma.f32() + begin, end - begin);
      if (!dbeta) continue;
      HWY_DYNAMIC_DISPATCH(add_strip)(part + n + begin, dbeta.f32() + begin, end - begin);
    }
  });
}

}  // namespace finetune
#endif
