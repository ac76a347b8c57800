#include "ops/cpu/gemm.h"

#include <dnnl.h>
#include <omp.h>

#include <cstring>

#include "ops/cpu/tasks.h"

namespace finetune::cpu {
namespace {

constexpr int64_t kTileRows = 256;
constexpr int64_t kTileCols = 384;
constexpr int64_t kLeastTiles = 4;      // so that a few cores have work in a small product,
constexpr int64_t kSmallestSide = 64;   // unless it is tiny
constexpr int64_t kFewTiles = 16;       // below this number an odd one would leave a core idle

struct Tiles {
  int64_t down, across;    // number of tiles
  int64_t rows, cols;      // of one; the last may be smaller
};

// Every tile packs its operands anew, so tiles are as large as balance allows: these sizes lose 5 %
// of the rate of one uncut product, squares of 128 lose 20 %.
Tiles cut(int64_t m, int64_t n) {
  Tiles t{(m + kTileRows - 1) / kTileRows, (n + kTileCols - 1) / kTileCols, 0, 0};
  auto size = [&] {
    t.rows = (m + t.down - 1) / t.down;
    t.cols = round_up((n + t.across - 1) / t.across, 16);
  };
  size();
  while (t.down * t.across < kLeastTiles && std::max(t.rows, t.cols) >= 2 * kSmallestSide) {
    (t.rows >= t.cols ? t.down : t.across) *= 2;
    size();
  }
  if (t.down * t.across % 2 == 1 && t.down * t.across > 1 && t.down * t.across < kFewTiles) {
    (t.rows >= t.cols ? t.down : t.across) += 1;
    size();
  }
  return t;
}

}  // namespace

void multiply(const Product& p) {
  const int64_t m = p.c.rows, n = p.c.cols, k = p.transpose_a ? p.a.rows : p.a.cols;
  FINETUNE_CHECK((p.transpose_a ? p.a.cols : p.a.rows) == m);
  FINETUNE_CHECK((p.transpose_b ? p.b.cols : p.b.rows) == k);
  FINETUNE_CHECK((p.transpose_b ? p.b.rows : p.b.cols) == n);
  FINETUNE_CHECK(!p.bias || (p.bias.size() == n && !p.accumulate));
  const float* a = p.a.f32();
  const float* b = p.b.f32();
  float* c = p.c.f32();
  const float* bias = p.bias ? p.bias.f32() : nullptr;
  const float beta = p.accumulate || bias ? 1.0f : 0.0f;
  const Tiles tiles = cut(m, n);
  for_tasks(tiles.down * tiles.across, [&](int64_t i) {
    // Tiles that share columns of b follow each other.
    const int64_t row = i % tiles.down * tiles.rows, rows = std::min(tiles.rows, m - row);
    const int64_t col = i / tiles.down * tiles.cols, cols = std::min(tiles.cols, n - col);
    if (rows <= 0 || cols <= 0) return;
    float* tile = c + row * p.c.stride + col;
    if (bias) {
      for (int64_t r = 0; r < rows; ++r) {
        std::memcpy(tile + r * p.c.stride, bias + col, size_t(cols) * sizeof(float));
      }
    }
    omp_set_num_threads(1);  // of this thread alone: oneDNN must not cut the tile again
    const dnnl_status_t status = dnnl_sgemm(
        p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', rows, cols, k, 1.0f,
        a + (p.transpose_a ? row : row * p.a.stride), p.a.stride,
        b + (p.transpose_b ? col * p.b.stride : col), p.b.stride, beta, tile, p.c.stride);
    FINETUNE_CHECK(status == dnnl_success);
  });
}

}  // namespace finetune::cpu
