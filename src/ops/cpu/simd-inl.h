// Shared vector code, included once for each instruction set (hence the toggled guard).
#if defined(FINETUNE_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FINETUNE_CPU_SIMD_INL_H_
#undef FINETUNE_CPU_SIMD_INL_H_
#else
#define FINETUNE_CPU_SIMD_INL_H_
#endif

#include <cstdint>

#include "core/numeric/dtype.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/cpu/tasks.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using OneFloat = hn::CappedTag<float, 1>;
constexpr int64_t kLanes = int64_t{hn::MaxLanes(Floats())};

template <class T>
constexpr int64_t kLineOf = 64 / int64_t{sizeof(T)};  // elements
constexpr int64_t kLine = kLineOf<float>;

// Loads floats from float or bf16 memory and stores them, rounding to nearest even. NaN is kept.
template <class D>
HWY_INLINE hn::Vec<D> load_as(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> load_as(D d, const bfloat16* from) {
  const hn::Rebind<uint16_t, D> half;
  const hn::Rebind<uint32_t, D> bits;
  const auto v = hn::LoadU(half, reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, v)));
}
template <class D>
HWY_INLINE void store_as(D d, hn::Vec<D> v, float* to) {
  hn::StoreU(v, d, to);
}
template <class D>
HWY_INLINE void store_as(D, hn::Vec<D> v, bfloat16* to) {
  const hn::Rebind<uint16_t, D> half;
  const hn::Rebind<uint32_t, D> bits;
  const auto u = hn::BitCast(bits, v);
  const auto even = hn::And(hn::ShiftRight<16>(u), hn::Set(bits, 1u));
  const auto rounded = hn::Add(u, hn::Add(even, hn::Set(bits, 0x7FFFu)));
  const auto nan = hn::Or(u, hn::Set(bits, 0x400000u));
  const auto out = hn::IfThenElse(hn::RebindMask(bits, hn::IsNaN(v)), nan, rounded);
  hn::StoreU(hn::TruncateTo(half, hn::ShiftRight<16>(out)), half, reinterpret_cast<uint16_t*>(to));
}

// Prefetches each array `ahead` elements behind x + i, one line at a time.
template <class... Arrays>
HWY_INLINE void prefetch_beyond(int64_t i, int64_t ahead, const Arrays*... x) {
  const auto one = [&](const auto* p) HWY_ATTR {
    if (i % kLineOf<std::remove_cvref_t<decltype(*p)>> == 0) hwy::Prefetch(p + i + ahead);
  };
  (one(x), ...);
}

// Prefetches each array cpu::kAhead elements behind x + i, in a long run.
template <class... Arrays>
HWY_INLINE void prefetch_ahead(int64_t i, const Arrays*... x) {
  prefetch_beyond(i, cpu::kAhead, x...);
}

// Prefetches a matrix (rows, cols) that is needed soon.
template <class T>
HWY_INLINE void prefetch(const T* x, int64_t stride, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < cols; i += kLineOf<T>) hwy::Prefetch(x + r * stride + i);
  }
}

// Sums over rows always use this many lanes: the same bits on AVX2 and AVX-512.
constexpr int64_t kSumLanes = 16;

// body(tag, i) for i = 0, kLanes, ... with full vectors, while kSumLanes elements are left, then
// element by element.
template <class Body>
HWY_INLINE void for_lanes(int64_t count, const Body& body) {
  const int64_t whole = count / kSumLanes * kSumLanes;
  int64_t i = 0;
  for (; i < whole; i += kLanes) body(Floats(), i);
  for (; i < count; ++i) body(OneFloat(), i);
}

// c[0] + x*c[1] + ... + x^n*c[n]
template <class D, class V, size_t kCount>
HWY_INLINE V polynomial(D d, V x, const float (&c)[kCount]) {
  V sum = hn::Set(d, c[kCount - 1]);
  for (size_t i = kCount - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

// exp(x) for x <= 88 (clamped above), 0 below -87.3; NaN is kept. Error below 1.5 ulp: 2^n *
// exp(r), |r| <= ln(2)/2, polynomial from Cephes' expf.
template <class D, class V>
HWY_INLINE V exp_of(D d, V x) {
  const hn::RebindToSigned<D> di;
  // Min and Max keep the second operand's NaN
  x = hn::Max(hn::Set(d, -88.0f), hn::Min(hn::Set(d, 88.0f), x));
  const V n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504088896341f)));
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  const V tail = polynomial(d, r,
                            {5.0000001201e-1f, 1.6666665459e-1f, 4.1665795894e-2f, 8.3334519073e-3f,
                             1.3981999507e-3f, 1.9875691500e-4f});
  const V y = hn::Add(hn::MulAdd(hn::Mul(r, r), tail, r), hn::Set(d, 1.0f));
  const auto exponent = hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127));
  return hn::Mul(y, hn::BitCast(d, hn::ShiftLeft<23>(exponent)));
}

template <class D, class V>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, exp_of(d, hn::Neg(x))));
}

// Polynomial from Cephes' tanhf below 0.625, where 1 - 2/(exp(2x) + 1) would lose precision.
template <class D, class V>
HWY_INLINE V tanh_of(D d, V x) {
  const V size = hn::Abs(x);
  const V one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f);
  const V square = hn::Mul(x, x);
  const V p = polynomial(d, square,
                         {-3.33332819422e-1f, 1.33314422036e-1f, -5.37397155531e-2f,
                          2.06390887954e-2f, -5.70498872745e-3f});
  const V small = hn::MulAdd(hn::Mul(p, square), x, x);
  const V exponential = exp_of(d, hn::Min(hn::Set(d, 40.0f), hn::Mul(size, two)));
  const V large = hn::Sub(one, hn::Div(two, hn::Add(exponential, one)));
  return hn::IfThenElse(hn::Lt(size, hn::Set(d, 0.625f)), small, hn::CopySign(large, x));
}

// The derivative of tanh, 4 E / (E + 1)^2 with E = exp(2|x|): 1 - tanh^2 would lose precision.
template <class D, class V>
HWY_INLINE V tanh_slope(D d, V x) {
  const V e = exp_of(d, hn::Min(hn::Set(d, 80.0f), hn::Mul(hn::Abs(x), hn::Set(d, 2.0f))));
  const V half = hn::Div(hn::Set(d, 2.0f), hn::Add(e, hn::Set(d, 1.0f)));
  return hn::Mul(hn::Mul(e, half), half);
}

// For the standard normal distribution: `below` = 0.5 * erfc(-x / sqrt(2)), relative error below
// 1e-6 also for negative x, and `bell` = exp(-x^2 / 2).
template <class V>
struct Normal {
  V below;
  V bell;
};

template <class D, class V>
HWY_INLINE Normal<V> normal(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V z = hn::Mul(hn::Abs(x), hn::Set(d, 0.70710678118654752f));
  // Restores what rounding x^2 loses: exp(-(a + b)/2) = exp(-a/2) * (1 - b/2) for small b.
  const V size = hn::Min(hn::Set(d, 20.0f), hn::Abs(x));
  const V square = hn::Mul(size, size);
  const V lost = hn::MulSub(size, size, square);
  const V rough = exp_of(d, hn::Mul(square, hn::Set(d, -0.5f)));
  const V bell = hn::NegMulAdd(hn::Mul(rough, hn::Set(d, 0.5f)), lost, rough);
  // erfc(z) = exp(-z^2) * t * P(t), t = 1 / (1 + 0.4 z): minimax over z in [0, 9.5], error 6e-8.
  const V t = hn::Div(one, hn::MulAdd(z, hn::Set(d, 0.4f), one));
  const V p = polynomial(d, t,
                         {0.225626303f, 0.226575625f, 0.200959201f, 0.196960553f, 0.0715142329f,
                          0.0997208537f, 0.0738498877f, -0.135474886f, 0.0402682859f});
  const V tail = hn::Mul(hn::Mul(hn::Set(d, 0.5f), bell), hn::Mul(t, p));
  return {hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail)), bell};
}

// The sum of kCount lanes, 4 or a multiple, by adding halves to each other.
template <int64_t kCount, class V>
HWY_INLINE auto sum_of(V v) {
  if constexpr (kCount == 4) {
    HWY_ALIGN hn::TFromV<V> x[kCount];
    hn::Store(v, hn::FixedTag<hn::TFromV<V>, kCount>(), x);
    for (int64_t half = kCount / 2; half > 0; half /= 2) {
      for (int64_t i = 0; i < half; ++i) x[i] += x[i + half];
    }
    return x[0];
  } else {
    const hn::FixedTag<hn::TFromV<V>, kCount / 2> half;
    return sum_of<kCount / 2>(hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// A sum over for_lanes: full vectors and the tail are separate until total().
struct LaneSum {
  hn::Vec<Floats> wide, other;  // `other` is for every second vector if vectors have half the lanes
  hn::Vec<OneFloat> tail;

  HWY_INLINE LaneSum()
      : wide(hn::Zero(Floats())), other(hn::Zero(Floats())), tail(hn::Zero(OneFloat())) {}
  HWY_INLINE void add(Floats, hn::Vec<Floats> v) {
    const auto sum = hn::Add(wide, v);
    if constexpr (kLanes == kSumLanes) {
      wide = sum;
    } else {
      wide = other;
      other = sum;
    }
  }
  HWY_INLINE void add(OneFloat, hn::Vec<OneFloat> v) { tail = hn::Add(tail, v); }
  HWY_INLINE float total() const {
    static_assert(kLanes == kSumLanes || 2 * kLanes == kSumLanes);
    const float sum =
        kLanes == kSumLanes ? sum_of<kLanes>(wide) : sum_of<kLanes>(hn::Add(wide, other));
    return sum + hn::GetLane(tail);
  }
};

// y += x
template <class T>
HWY_INLINE void add_to(const T* x, float* y, int64_t count) {
  for_lanes(count, [=](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, y + i), load_as(d, x + i)), d, y + i);
  });
}

}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FINETUNE_CPU_SIMD_INL_H_
