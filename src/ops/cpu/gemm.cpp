#include "ops/cpu/gemm.h"

#include <dnnl.h>
#include <omp.h>

#include <cstring>

#include "ops/cpu/isa.h"
#include "ops/cpu/panel_gemm.h"
#include "ops/cpu/tasks.h"
#include "ops/cpu/transpose.h"

namespace finetune::cpu {
namespace {

constexpr int64_t kLeastTiles = 4;     // so that a few cores have work in a small product,
constexpr int64_t kSmallestSide = 64;  // unless it is tiny
constexpr int64_t kFewTiles = 16;      // below this number an odd one would leave a core idle

// So few rows of a are not worth turning b for: with 4 that takes longer than the product.
constexpr int64_t kFewRows = 16;
// Depth of an operand that is packed at once.
constexpr int64_t kDepth = 384;

struct Tiles {
  int64_t down, across;  // number of tiles
  int64_t rows, cols;    // of one; the last may be smaller
};

// (m, n) in tiles of at most `rows` x `cols`, of nearly equal size.
Tiles cut(int64_t m, int64_t n, int64_t rows, int64_t cols) {
  Tiles t{(m + rows - 1) / rows, (n + cols - 1) / cols, 0, 0};
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

struct Tile {
  int64_t row, rows, col, cols;
};

void sgemm(char transpose_a, char transpose_b, const Tile& t, int64_t depth, const float* a,
           int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  omp_set_num_threads(1);  // of this thread alone: oneDNN must not cut the tile again
  const dnnl_status_t status = dnnl_sgemm(transpose_a, transpose_b, t.rows, t.cols, depth, 1.0f, a,
                                          lda, b, ldb, beta, c, ldc);
  FINETUNE_CHECK(status == dnnl_success);
}

// An operand that lies across the depth for oneDNN costs it a tenth (b) to a third (a) of its rate:
// such a tile's lines are copied first, the way its best kernels want them, a part of the depth at
// a time. body(first, count, packed, beta) multiplies a part.
template <typename Body>
void by_parts(const Product& p, int64_t lines, Body&& body) {
  const int64_t depth = p.depth();
  float* packed = scratch(Scratch::task, std::min(kDepth, depth) * lines);
  for (int64_t first = 0; first < depth; first += kDepth) {
    body(first, std::min(kDepth, depth - first), packed, first > 0 || p.accumulate ? 1.0f : 0.0f);
  }
}

// c = or += a^T * b, for weight gradients: a's rows lie a few KB apart and oneDNN would read short
// pieces of them again and again.
void add_transposed(const Product& p, const Tile& t, float* c) {
  by_parts(p, t.rows, [&](int64_t first, int64_t count, float* packed, float beta) {
    const float* from = p.a.f32() + first * p.a.stride + t.row;
    for (int64_t k = 0; k < count; ++k) {
      std::memcpy(packed + k * t.rows, from + k * p.a.stride, size_t(t.rows) * sizeof(float));
    }
    sgemm('T', 'N', t, count, packed, t.rows, p.b.f32() + first * p.b.stride + t.col, p.b.stride,
          beta, c, p.c.stride);
  });
}

// c = or += a * b^T, for the forward pass.
void add_product_of_transposed(const Product& p, const Tile& t, float* c) {
  by_parts(p, t.cols, [&](int64_t first, int64_t count, float* packed, float beta) {
    transpose(p.b.f32() + t.col * p.b.stride + first, p.b.stride, t.cols, count, packed, t.cols);
    sgemm('N', 'N', t, count, p.a.f32() + t.row * p.a.stride + first, p.a.stride, packed, t.cols,
          beta, c, p.c.stride);
  });
}

void rows_product(const Product& p, const Tile& t, float* c) {
  const bool transpose_b = p.transpose_b;
  if (transpose_b && t.rows >= kFewRows) {
    add_product_of_transposed(p, t, c);
  } else {
    sgemm('N', transpose_b ? 'T' : 'N', t, p.a.cols, p.a.f32() + t.row * p.a.stride, p.a.stride,
          p.b.f32() + (transpose_b ? t.col * p.b.stride : t.col), p.b.stride,
          p.accumulate ? 1.0f : 0.0f, c, p.c.stride);
  }
  // While the tile is in a cache: sums that begin with it come from memory first.
  if (p.bias) add_bias(p.bias.f32() + t.col, {c, DType::f32, t.rows, t.cols, p.c.stride});
}

}  // namespace

void add_bias(const float* bias, Tensor c) {
  float* row = c.f32();
  for (int64_t r = 0; r < c.rows; ++r, row += c.stride) {
    for (int64_t i = 0; i < c.cols; ++i) row[i] += bias[i];
  }
}

void check(const Product& p) {
  const int64_t m = p.c.rows, n = p.c.cols;
  FINETUNE_CHECK((p.transpose_a ? p.a.cols : p.a.rows) == m);
  FINETUNE_CHECK((p.transpose_b ? p.b.cols : p.b.rows) == p.depth());
  FINETUNE_CHECK(p.b_cols() == n);
  FINETUNE_CHECK(!p.bias || (p.bias.size() == n && !p.accumulate));
  FINETUNE_CHECK(!p.transpose_a || (!p.bias && !p.transpose_b));
  FINETUNE_CHECK(!p.accumulate || p.c.dtype == DType::f32);
}

void multiply(const Product& p) {
  check(p);
  // On AVX2 oneDNN reaches half to four fifths of what these do; on AVX-512 it is as fast.
  if (select_isa() == Isa::avx2) return panel_multiply(p);
  const int64_t m = p.c.rows, n = p.c.cols;
  // Every tile packs its operands anew, so tiles are as large as balance allows: with 256 x 384 a
  // step of BERT-base is 4 % slower than with 512 x 768, squares of 128 lose 20 %.
  const Tiles tiles = p.transpose_a ? cut(m, n, 384, 768) : cut(m, n, 512, 768);
  for_tasks(tiles.down * tiles.across, [&](int64_t i) {
    const int64_t row = i % tiles.down * tiles.rows, col = i / tiles.down * tiles.cols;
    const Tile t{row, std::min(tiles.rows, m - row), col, std::min(tiles.cols, n - col)};
    if (t.rows <= 0 || t.cols <= 0) return;
    float* c = p.c.f32() + row * p.c.stride + col;
    p.transpose_a ? add_transposed(p, t, c) : rows_product(p, t, c);
  });
}

}  // namespace finetune::cpu
