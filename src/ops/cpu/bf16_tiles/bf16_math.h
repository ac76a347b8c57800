// Vector functions of 16 floats (exponential, sigmoid, ...) for results that are rounded to bf16.
// Rounding has an error of 2^-9; the functions' own error is below 2e-6 for |x| <= 6 and 1e-5
// beyond, relative to the result or, where a derivative is near 0, to its factors. sigmoid(x) is at
// least 2^-126. Needs AVX-512.
#pragma once

#include <immintrin.h>

#include <type_traits>

#include "ops/cpu/kernels/activation.h"

namespace finetune::cpu {

constexpr float kLog2e = 1.44269504088896341f;

// 2^x; 0 or infinity out of range. Taylor series of 2^f, |f| <= 1/2, error below 2e-7.
inline __m512 exp2_of(__m512 x) {
  const __m512 f = _mm512_reduce_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 p = _mm512_set1_ps(1.5403530393381608e-4f);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.3333558146428443e-3f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(9.6181291076284772e-3f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(5.5504108664821580e-2f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(2.4022650695910072e-1f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(6.9314718055994531e-1f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, _mm512_sub_ps(x, f));
}

// 1 / x for finite x >= 1: a 14-bit estimate and one Newton step.
inline __m512 inverse(__m512 x) {
  const __m512 r = _mm512_rcp14_ps(x);
  return _mm512_mul_ps(r, _mm512_fnmadd_ps(x, r, _mm512_set1_ps(2.0f)));
}

// 1 / (1 + 2^-y), with y clamped to >= -126; NaN is kept.
inline __m512 gate(__m512 y) {
  const __m512 e =
      exp2_of(_mm512_min_ps(_mm512_set1_ps(126.0f), _mm512_sub_ps(_mm512_setzero_ps(), y)));
  return inverse(_mm512_add_ps(e, _mm512_set1_ps(1.0f)));
}

// Values of the standard normal distribution.
struct Tail {
  __m512 beyond;  // the tail beyond |x|, erfc(|x| / sqrt(2)) / 2
  __m512 bell;    // exp(-x^2 / 2)
};

// x|, clamped where larger values make no difference; NaN is kept.
inline __m512 size_of(__m512 x) {
  return _mm512_min_ps(_mm512_set1_ps(1e4f), _mm512_abs_ps(x));
}

// erfc(z) = exp(-z^2) * t * P(t), t = 1 / (1 + 0.4 z), with the polynomial of simd-inl.h.
inline Tail tail(__m512 x) {
  const __m512 t = inverse(
      _mm512_fmadd_ps(size_of(x), _mm512_set1_ps(0.4f * 0.70710678f), _mm512_set1_ps(1.0f)));
  constexpr float kHalves[] = {0.225626303f / 2,  0.226575625f / 2,  0.200959201f / 2,
                               0.196960553f / 2,  0.0715142329f / 2, 0.0997208537f / 2,
                               0.0738498877f / 2, -0.135474886f / 2, 0.0402682859f / 2};
  __m512 p = _mm512_set1_ps(kHalves[8]);
#pragma GCC unroll 8
  for (int i = 7; i >= 0; --i) p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(kHalves[i]));
  const __m512 bell = exp2_of(_mm512_mul_ps(_mm512_mul_ps(x, x), _mm512_set1_ps(-0.5f * kLog2e)));
  return {_mm512_mul_ps(t, _mm512_mul_ps(p, bell)), bell};
}

// 2u / ln(2) of gelu_tanh: 0.5 x (1 + tanh(u)) = x sigmoid(2u), and x times the derivative of 2u.
constexpr float kTanhScale = 2 * 0.79788456080286536f * kLog2e;
inline __m512 tanh_cubic(__m512 x, float cubic) {
  return _mm512_mul_ps(x, _mm512_fmadd_ps(_mm512_mul_ps(x, x), _mm512_set1_ps(kTanhScale * cubic),
                                          _mm512_set1_ps(kTanhScale)));
}

template <Activation kKind>
inline __m512 activated(__m512 x) {
  const __m512 zero = _mm512_setzero_ps();
  if constexpr (kKind == Activation::gelu) {  // max(x, 0) minus |x| times the tail
    return _mm512_fnmadd_ps(size_of(x), tail(x).beyond, _mm512_max_ps(zero, x));
  }
  if constexpr (kKind == Activation::gelu_tanh) {
    return _mm512_mul_ps(x, gate(tanh_cubic(x, 0.044715f)));
  }
  if constexpr (kKind == Activation::relu) return _mm512_max_ps(zero, x);
  if constexpr (kKind == Activation::silu) {
    return _mm512_mul_ps(x, gate(_mm512_mul_ps(x, _mm512_set1_ps(kLog2e))));
  }
}

// The derivative of activated().
template <Activation kKind>
inline __m512 slope(__m512 x) {
  const __m512 one = _mm512_set1_ps(1.0f);
  const auto gated = [&](__m512 g, __m512 u) {  // g + u g (1 - g)
    return _mm512_fmadd_ps(_mm512_mul_ps(u, g), _mm512_sub_ps(one, g), g);
  };
  if constexpr (kKind == Activation::gelu) {
    const Tail t = tail(x);
    const __mmask16 above = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NLT_UQ);
    const __m512 below = _mm512_mask_sub_ps(t.beyond, above, one, t.beyond);
    return _mm512_fmadd_ps(_mm512_mul_ps(x, _mm512_set1_ps(0.39894228040143268f)), t.bell, below);
  }
  if constexpr (kKind == Activation::gelu_tanh) {
    const __m512 u = _mm512_mul_ps(tanh_cubic(x, 3 * 0.044715f), _mm512_set1_ps(1 / kLog2e));
    return gated(gate(tanh_cubic(x, 0.044715f)), u);
  }
  if constexpr (kKind == Activation::relu) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ), one);
  }
  if constexpr (kKind == Activation::silu) {
    return gated(gate(_mm512_mul_ps(x, _mm512_set1_ps(kLog2e))), x);
  }
}

// Calls body(kind), whose type is the activation, for activated() and slope().
template <typename Body>
void with_activation(Activation f, const Body& body) {
  switch (f) {
    case Activation::gelu:
      return body(std::integral_constant<Activation, Activation::gelu>());
    case Activation::gelu_tanh:
      return body(std::integral_constant<Activation, Activation::gelu_tanh>());
    case Activation::relu:
      return body(std::integral_constant<Activation, Activation::relu>());
    case Activation::silu:
      return body(std::integral_constant<Activation, Activation::silu>());
    case Activation::tanh:
      break;
  }
  FINETUNE_CHECK(has_bf16_activation(f));
}

}  // namespace finetune::cpu
