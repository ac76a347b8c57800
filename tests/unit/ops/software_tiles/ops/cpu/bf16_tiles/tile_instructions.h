// Tile registers in software, in the place of the header of this name.
// Products on tiles can be tested on every machine with AVX-512 and BF16. As AMX does, an
// instruction traps where no tiles are configured (that of other shapes than whole tiles, too), and
// the order and the rounding of sums are its own (Intel's manual, TDPBF16PS; denormals are zero, as
// in every task). Sanitizers see what is loaded here, which tileloadd's is not.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace finetune::cpu {

inline bool has_tile_instructions() {
  return true;
}
inline void before_tile_loads() {}

struct SoftwareTiles {
  alignas(64) uint8_t rows[8][16][64];
  bool configured = false;
  int64_t products = 0;

  void require(bool condition) const {
    if (!condition) std::abort();
  }
  void load_config(const void* from) {
    uint8_t bytes[64];
    std::memcpy(bytes, from, sizeof bytes);
    require(bytes[0] == 1 && bytes[1] == 0);
    for (int i = 2; i < 64; ++i) {
      const bool shape = (i >= 16 && i < 32) || (i >= 48 && i < 56);
      require(shape || bytes[i] == 0);
    }
    for (int t = 0; t < 8; ++t) {
      uint16_t row_bytes;
      std::memcpy(&row_bytes, bytes + 16 + 2 * t, sizeof row_bytes);
      require(row_bytes == 64 && bytes[48 + t] == 16);
    }
    std::memset(rows, 0, sizeof rows);
    configured = true;
  }
  void release() { configured = false; }
  void zero(int t) {
    require(configured);
    std::memset(rows[t], 0, sizeof rows[t]);
  }
  void load(int t, const void* from, int64_t stride) {
    require(configured);
    for (int r = 0; r < 16; ++r) {
      std::memcpy(rows[t][r], static_cast<const char*>(from) + r * stride, 64);
    }
  }
  void store(int t, void* to, int64_t stride) const {
    require(configured);
    for (int r = 0; r < 16; ++r) {
      std::memcpy(static_cast<char*>(to) + r * stride, rows[t][r], 64);
    }
  }
  // c += a * b. The products of even and odd depths of a row are summed separately.
  __attribute__((target("avx512f"))) void multiply(int c, int a, int b) {
    require(configured && c != a && c != b && a != b);
    ++products;
    const __m512i high = _mm512_set1_epi32(int32_t(0xFFFF0000));
    for (int r = 0; r < 16; ++r) {
      __m512 even = _mm512_setzero_ps(), odd = even;
      for (int k = 0; k < 16; ++k) {
        uint32_t pair;
        std::memcpy(&pair, rows[a][r] + 4 * k, sizeof pair);
        const __m512i left = _mm512_set1_epi32(int32_t(pair));
        const __m512i right = _mm512_load_si512(rows[b][k]);
        even = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(left, 16)),
                               _mm512_castsi512_ps(_mm512_slli_epi32(right, 16)), even);
        odd = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(left, high)),
                              _mm512_castsi512_ps(_mm512_and_si512(right, high)), odd);
      }
      const __m512 sums = _mm512_load_ps(rows[c][r]);
      _mm512_store_ps(rows[c][r], _mm512_add_ps(sums, _mm512_add_ps(even, odd)));
    }
  }
};

inline thread_local SoftwareTiles software_tiles;

}  // namespace finetune::cpu

#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#define _tile_loadconfig(config) ::finetune::cpu::software_tiles.load_config(config)
#define _tile_release() ::finetune::cpu::software_tiles.release()
#define _tile_zero(t) ::finetune::cpu::software_tiles.zero(t)
#define _tile_loadd(t, from, stride) ::finetune::cpu::software_tiles.load(t, from, int64_t(stride))
#define _tile_stored(t, to, stride) ::finetune::cpu::software_tiles.store(t, to, int64_t(stride))
#define _tile_dpbf16ps(c, a, b) ::finetune::cpu::software_tiles.multiply(c, a, b)
