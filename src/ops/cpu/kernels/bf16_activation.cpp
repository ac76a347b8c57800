// Activations and derivatives of bf16 rows by approximate AVX-512 functions.
#include "ops/cpu/bf16_tiles/bf16_math.h"
#include "ops/cpu/bf16_tiles/tile_pack.h"
#include "ops/cpu/kernels/activation.h"

namespace finetune::cpu {
namespace {

__m512 wide(__m256i x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

void store(bfloat16* to, __mmask16 mask, __m512 x) {
  _mm256_mask_storeu_epi16(to, mask, (__m256i)_mm512_cvtneps_pbh(x));
}

// y may be null if dy is given.
template <Activation kKind, bool kBackward>
void compute_row(const bfloat16* x, const bfloat16* dy, bfloat16* dx, bfloat16* y, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 mask = lane_mask(count - i);
    if (i % 32 == 0) {
      _mm_prefetch(reinterpret_cast<const char*>(x + i + kAhead), _MM_HINT_T0);
      // outputs continue at the same place as their inputs
      const bfloat16* other = kBackward ? dy : y;
      _mm_prefetch(reinterpret_cast<const char*>(other + i + kAhead), _MM_HINT_T0);
    }
    const __m512 v = wide(_mm256_maskz_loadu_epi16(mask, x + i));
    if constexpr (kBackward) {
      const __m512 gradient = wide(_mm256_maskz_loadu_epi16(mask, dy + i));
      store(dx + i, mask, _mm512_mul_ps(gradient, slope<kKind>(v)));
    }
    if (!kBackward || y) store(y + i, mask, activated<kKind>(v));
  }
}

template <Activation kKind>
void rows_of(const ActivationCall& call, int64_t begin, int64_t end) {
  const auto compute = call.dy ? compute_row<kKind, true> : compute_row<kKind, false>;
  for (int64_t r = begin; r < end; ++r) {
    compute(row_of<bfloat16>(call.x, r), row_of<bfloat16>(call.dy, r), row_of<bfloat16>(call.dx, r),
            row_of<bfloat16>(call.y, r), call.x.cols);
  }
}

}  // namespace

void bf16_activation_rows(const ActivationCall& call, int64_t begin, int64_t end) {
  with_activation(call.f, [&](auto kind) { rows_of<kind()>(call, begin, end); });
}

}  // namespace finetune::cpu
