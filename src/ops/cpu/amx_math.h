// Functions of 16 floats whose results are rounded to bf16: error below 2^-12 of the result, where
// that of the rounding is 2^-9, or 1e-7 |x| where this is more (gelu far below 0). Needs AVX-512.
#pragma once

#include <immintrin.h>

#include "ops/backend.h"

namespace finetune::cpu {

constexpr float kLog2e = 1.44269504088896341f;

// 2^x; 0 far below and infinity far above. Taylor's series of 2^f, |f| <= 1/2, error below 2e-7.
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

// x / (1 + 2^-y)
inline __m512 gated(__m512 x, __m512 y) {
  const __m512 e = exp2_of(_mm512_sub_ps(_mm512_setzero_ps(), y));
  return _mm512_mul_ps(x, _mm512_rcp14_ps(_mm512_add_ps(e, _mm512_set1_ps(1.0f))));
}

// x times the normal distribution's share below x; erfc from Abramowitz and Stegun, 7.1.26, whose
// error is 1.5e-7.
inline __m512 gelu(__m512 x) {
  const __m512 size = _mm512_abs_ps(x);
  const __m512 t = _mm512_rcp14_ps(
      _mm512_fmadd_ps(size, _mm512_set1_ps(0.3275911f * 0.70710678f), _mm512_set1_ps(1.0f)));
  __m512 p = _mm512_set1_ps(0.5f * 1.061405429f);
  p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(0.5f * -1.453152027f));
  p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(0.5f * 1.421413741f));
  p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(0.5f * -0.284496736f));
  p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(0.5f * 0.254829592f));
  const __m512 bell = exp2_of(_mm512_mul_ps(_mm512_mul_ps(x, x), _mm512_set1_ps(-0.5f * kLog2e)));
  // |x| times what lies beyond |x|: what is missing from max(x, 0).
  const __m512 missing = _mm512_mul_ps(_mm512_mul_ps(size, t), _mm512_mul_ps(p, bell));
  return _mm512_sub_ps(_mm512_max_ps(x, _mm512_setzero_ps()), missing);
}

template <Activation kKind>
inline __m512 activated(__m512 x) {
  if constexpr (kKind == Activation::gelu) return gelu(x);
  if constexpr (kKind == Activation::gelu_tanh) {  // 0.5 * (1 + tanh(u)) is sigmoid(2u)
    constexpr float kScale = 2 * 0.79788456080286536f * kLog2e;
    const __m512 slope = _mm512_fmadd_ps(_mm512_mul_ps(x, x), _mm512_set1_ps(kScale * 0.044715f),
                                         _mm512_set1_ps(kScale));
    return gated(x, _mm512_mul_ps(x, slope));
  }
  if constexpr (kKind == Activation::relu) return _mm512_max_ps(_mm512_setzero_ps(), x);
  if constexpr (kKind == Activation::silu)
    return gated(x, _mm512_mul_ps(x, _mm512_set1_ps(kLog2e)));
}

}  // namespace finetune::cpu
