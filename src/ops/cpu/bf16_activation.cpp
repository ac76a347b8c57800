#include "ops/cpu/bf16_activation.h"

#include "ops/cpu/bf16_math.h"
#include "ops/cpu/tile_pack.h"

namespace finetune::cpu {
namespace {

__m512 wide(__m256i x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

template <Activation kKind, bool kBackward>
void row_of(const bfloat16* x, const bfloat16* dy, bfloat16* out, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 mask = lane_mask(count - i);
    if (i % 32 == 0) {
      _mm_prefetch(reinterpret_cast<const char*>(x + i + kAhead), _MM_HINT_T0);
      if (kBackward) _mm_prefetch(reinterpret_cast<const char*>(dy + i + kAhead), _MM_HINT_T0);
    }
    __m512 y = wide(_mm256_maskz_loadu_epi16(mask, x + i));
    if constexpr (kBackward) {
      y = _mm512_mul_ps(wide(_mm256_maskz_loadu_epi16(mask, dy + i)), slope<kKind>(y));
    } else {
      y = activated<kKind>(y);
    }
    _mm256_mask_storeu_epi16(out + i, mask, (__m256i)_mm512_cvtneps_pbh(y));
  }
}

template <Activation kKind>
void rows_of(Tensor x, Tensor dy, Tensor out, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const bfloat16* from = x.as<bfloat16>() + r * x.stride;
    bfloat16* to = out.as<bfloat16>() + r * out.stride;
    if (dy) {
      row_of<kKind, true>(from, dy.as<bfloat16>() + r * dy.stride, to, x.cols);
    } else {
      row_of<kKind, false>(from, nullptr, to, x.cols);
    }
  }
}

}  // namespace

void bf16_activation_rows(Activation f, Tensor x, Tensor dy, Tensor out, int64_t begin,
                          int64_t end) {
  with_activation(f, [&](auto kind) { rows_of<kind()>(x, dy, out, begin, end); });
}

}  // namespace finetune::cpu
