// Blocks of tile products by VDPBF16PS, for CPUs without tile registers.
#include "ops/cpu/bf16_tiles/dot_blocks.h"

#include <cstring>

namespace finetune::cpu {
namespace {

constexpr int kRows = 8;  // at a time: sums and operands fit the registers

// Computes kDown rows of c from the first one on; the rows of their tiles begin at `a`.
template <int kDown, int kAcross>
void rows_product(const char* a, const Operand& left, const Operand& b, int64_t depth, float* c,
                  int64_t c_stride, bool add) {
  __m512 sums[kDown][kAcross];
#pragma GCC unroll 8
  for (int r = 0; r < kDown; ++r) {
#pragma GCC unroll 2
    for (int i = 0; i < kAcross; ++i) {
      sums[r][i] = add ? _mm512_loadu_ps(c + r * c_stride + 16 * i) : _mm512_setzero_ps();
    }
  }
  for (int64_t d = 0; d < depth; ++d, a += left.step) {
    const char* right[kAcross];
#pragma GCC unroll 2
    for (int i = 0; i < kAcross; ++i) right[i] = b.at(i, d);
#pragma GCC unroll 2
    for (int pair = 0; pair < kTileSide; ++pair) {
      __m512bh columns[kAcross];
#pragma GCC unroll 2
      for (int i = 0; i < kAcross; ++i) {
        columns[i] = (__m512bh)_mm512_loadu_si512(right[i]);
        right[i] += b.stride;
      }
#pragma GCC unroll 8
      for (int r = 0; r < kDown; ++r) {
        int two;
        std::memcpy(&two, a + r * left.stride + 4 * pair, sizeof two);
        const auto row = (__m512bh)_mm512_set1_epi32(two);
#pragma GCC unroll 2
        for (int i = 0; i < kAcross; ++i) {
          sums[r][i] = _mm512_dpbf16_ps(sums[r][i], row, columns[i]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kDown; ++r) {
#pragma GCC unroll 2
    for (int i = 0; i < kAcross; ++i) _mm512_storeu_ps(c + r * c_stride + 16 * i, sums[r][i]);
  }
}

template <int kDown>
void rows_product(int64_t rows, bool wide, const char* a, const Operand& left, const Operand& b,
                  int64_t depth, float* c, int64_t c_stride, bool add) {
  if (rows < kDown) {
    if constexpr (kDown > 1) {
      rows_product<kDown - 1>(rows, wide, a, left, b, depth, c, c_stride, add);
    }
  } else if (wide) {
    rows_product<kDown, 2>(a, left, b, depth, c, c_stride, add);
  } else {
    rows_product<kDown, 1>(a, left, b, depth, c, c_stride, add);
  }
}

}  // namespace

void dot_block(int64_t rows, bool wide, const Operand& a, const Operand& b, int64_t depth, float* c,
               int64_t c_stride, bool add) {
  for (int64_t r = 0; r < rows; r += kRows) {
    const char* first = a.at(r / kTileSide, 0) + r % kTileSide * int64_t(a.stride);
    rows_product<kRows>(rows - r, wide, first, a, b, depth, c + r * c_stride, c_stride, add);
  }
}

double dot_spin(int64_t rounds) {
  constexpr int kSums = 16;
  constexpr int64_t kPasses = 16;  // about as much work per round as tile registers do
  __m512 sums[kSums] = {};
  const auto x = (__m512bh)_mm512_setzero_si512();
  for (int64_t i = 0; i < kPasses * rounds; ++i) {
#pragma GCC unroll 16
    for (int k = 0; k < kSums; ++k) sums[k] = _mm512_dpbf16_ps(sums[k], x, x);
#pragma GCC unroll 16
    for (int k = 0; k < kSums; ++k) asm volatile("" : "+v"(sums[k]));
  }
  return double(kPasses * rounds) * kSums * 2 * 2 * 16;
}

}  // namespace finetune::cpu
