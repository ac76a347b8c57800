#include "ops/cpu/amx_gemm.h"

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "ops/cpu/amx_pack.h"
#include "ops/cpu/tasks.h"

namespace finetune::cpu {
namespace {

constexpr int64_t kTile = kAmxTile;
constexpr int64_t kPanel = 2 * kAmxSide;      // columns of a block of c
constexpr int64_t kBlockRows = 2 * kAmxSide;  // and its rows
// Tiles of depth that are multiplied at once: the block's rows of a stay in the first-level cache.
constexpr int64_t kPartTiles = 16;
// Of each operand at most this much is packed at a time.
constexpr int64_t kMostPackedBytes = int64_t{8} << 20;
// Rows and panels of c that one task computes at most: its sums fill a quarter of a core's cache.
constexpr int64_t kTaskRows = 256;
constexpr int64_t kTaskPanels = 16;
constexpr int64_t kEnoughTasks = 6;

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

class Tiles {
 public:
  Tiles() {
    static constexpr TileConfig config;
    _tile_loadconfig(&config);
  }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// c (32, 32), rows `c_stride` apart, = or += the product of `depth` tiles of a's 32 rows, the
// second 16 of them `a_step` elements after the first, and of b's panel.
void block_product(const uint16_t* a, int64_t a_step, const uint16_t* b, int64_t depth, float* c,
                   int64_t c_stride, bool add) {
  const size_t stride = size_t(c_stride) * sizeof(float);
  float* lower = c + kAmxSide * c_stride;
  if (add) {
    _tile_loadd(0, c, stride);
    _tile_loadd(1, c + kAmxSide, stride);
    _tile_loadd(2, lower, stride);
    _tile_loadd(3, lower + kAmxSide, stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t d = 0; d < depth; ++d) {
    _tile_loadd(6, b, 64);
    _tile_loadd(4, a, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + kTile, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + a_step, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    a += kTile;
    b += 2 * kTile;
  }
  _tile_stored(0, c, stride);
  _tile_stored(1, c + kAmxSide, stride);
  _tile_stored(2, lower, stride);
  _tile_stored(3, lower + kAmxSide, stride);
}

// Lines of one operand (rows of op(a), columns of op(b)) [begin, begin + count) as tiles: groups of
// 16 lines, an even number of them, each `tiles` tiles of depth.
struct Packed {
  int64_t begin, count, tiles;
  uint16_t* data;
  int64_t groups() const { return round_up(count, kPanel) / kAmxSide; }
  int64_t floats() const { return groups() * tiles * kTile / 2; }
};

// Left: [group][tile]. Right: [panel of two groups][tile][half], as a block reads them.
uint16_t* left_tile(const Packed& packed, int64_t group, int64_t d) {
  return packed.data + (group * packed.tiles + d) * kTile;
}
uint16_t* right_tile(const Packed& packed, int64_t group, int64_t d) {
  return packed.data + ((group / 2 * packed.tiles + d) * 2 + group % 2) * kTile;
}

// The operand's lines are memory's rows: x (lines, depth). One task a group.
template <bool kTranspose, typename Place>
void pack_rows_along(Tensor x, const Packed& packed, const Place& place) {
  for_tasks(packed.groups(), [&](int64_t group) {
    for (int64_t r = 0; r < kAmxSide; ++r) {
      const int64_t line = group * kAmxSide + r;
      const float* from =
          line < packed.count ? x.f32() + (packed.begin + line) * x.stride : nullptr;
      pack_along(from, x.cols, r, [&](int64_t d) { return place(packed, group, d); });
    }
    if (!kTranspose) return;
    for (int64_t d = 0; d < packed.tiles; ++d) transpose_tile(place(packed, group, d));
  });
}

// The operand's lines are memory's columns: x (depth, lines). One task a tile of depth.
template <bool kTranspose, typename Place>
void pack_rows_across(Tensor x, const Packed& packed, const Place& place) {
  for_tasks(packed.tiles, [&](int64_t d) {
    const int64_t lines = packed.groups() * kAmxSide;
    for (int64_t r = 0; r < kAmxSide; ++r) {
      const auto row = [&](int64_t k) {
        return k < x.rows ? x.f32() + k * x.stride + packed.begin : nullptr;
      };
      const int64_t k = d * kAmxDepth + 2 * r;
      pack_across(row(k), row(k + 1), packed.count, r,
                  [&](int64_t group) { return place(packed, group, d); });
    }
    for (int64_t group = (packed.count + kAmxSide - 1) / kAmxSide; group < lines / kAmxSide;
         ++group) {
      std::memset(place(packed, group, d), 0, kTile * sizeof(uint16_t));
    }
    if (!kTranspose) return;
    for (int64_t group = 0; group < packed.groups(); ++group) {
      transpose_tile(place(packed, group, d));
    }
  });
}

// c's row = sums, past the caches: it is read a whole backward pass later.
void stream_row(const float* sums, int64_t cols, float* c) {
  for (int64_t i = 0; i < cols; i += 16) _mm512_stream_ps(c + i, _mm512_load_ps(sums + i));
}

// c's row = sums + bias, or += sums
void write_row(const float* sums, const float* bias, bool accumulate, int64_t cols, float* c) {
  for (int64_t i = 0; i < cols; i += 16) {
    const __mmask16 mask = amx_mask(cols - i);
    __m512 v = _mm512_load_ps(sums + i);
    if (accumulate) {
      v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, c + i));
    } else if (bias != nullptr) {
      v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, bias + i));
    }
    _mm512_mask_storeu_ps(c + i, mask, v);
  }
}

// The block of c at rows [row, row + rows) of left and panels [panel, panel + panels) of right. Its
// sums are formed in a cache, a part of the depth at a time so that the operands stay there too,
// and written row by row: narrower pieces come slowly to memory.
void task_product(const Product& p, const Packed& left, int64_t row, int64_t rows,
                  const Packed& right, int64_t panel, int64_t panels) {
  const int64_t width = panels * kPanel, tiles = left.tiles;
  const int64_t col = right.begin + panel * kPanel;
  const int64_t cols = std::min(width, right.begin + right.count - col);
  float* sums = scratch(Scratch::task, round_up(rows, kBlockRows) * width);
  const Tiles config;
  for (int64_t part = 0; part < tiles; part += kPartTiles) {
    const int64_t depth = std::min(kPartTiles, tiles - part);
    for (int64_t top = 0; top < rows; top += kBlockRows) {
      for (int64_t i = 0; i < panels; ++i) {
        block_product(left_tile(left, (row + top) / kAmxSide, part), tiles * kTile,
                      right_tile(right, 2 * (panel + i), part), depth,
                      sums + top * width + i * kPanel, width, part > 0);
      }
    }
  }
  float* const to = p.c.f32() + (left.begin + row) * p.c.stride + col;
  const bool whole_lines = reinterpret_cast<uintptr_t>(to) % 64 == 0 && p.c.stride % 16 == 0 &&
                           cols % 16 == 0;
  if (p.transpose_a && !p.accumulate && whole_lines) {
    for (int64_t r = 0; r < rows; ++r) stream_row(sums + r * width, cols, to + r * p.c.stride);
    _mm_sfence();
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    write_row(sums + r * width, p.bias ? p.bias.f32() + col : nullptr, p.accumulate, cols,
              to + r * p.c.stride);
  }
}

void multiply_packed(const Product& p, const Packed& left, const Packed& right) {
  const int64_t panels = right.groups() / 2;
  const int64_t down = (left.count + kTaskRows - 1) / kTaskRows;
  const int64_t rows = round_up((left.count + down - 1) / down, kBlockRows);
  const int64_t wanted = std::max<int64_t>(1, panels * down / kEnoughTasks);
  const int64_t per_task = std::min(kTaskPanels, wanted);
  const int64_t across = (panels + per_task - 1) / per_task;
  for_tasks(down * across, [&](int64_t task) {
    const int64_t row = task % down * rows, panel = task / down * per_task;
    if (row >= left.count) return;
    task_product(p, left, row, std::min(rows, left.count - row), right, panel,
                 std::min(per_task, panels - panel));
  });
}

}  // namespace

bool amx_enable() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;
  static const bool enabled = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return enabled;
}

void amx_multiply(const Product& p) {
  const int64_t m = p.c.rows, n = p.c.cols;
  const int64_t tiles = (p.depth() + kAmxDepth - 1) / kAmxDepth;
  FINETUNE_CHECK(tiles > 0);
  const int64_t most = std::max(
      kMostPackedBytes / (tiles * kAmxDepth * int64_t(sizeof(uint16_t))) / kPanel * kPanel, kPanel);
  for (int64_t col = 0; col < n; col += most) {
    Packed right{col, std::min(most, n - col), tiles, nullptr};
    const Packed largest_left{0, std::min(most, m), tiles, nullptr};
    float* space = scratch(Scratch::operation, right.floats() + largest_left.floats());
    right.data = reinterpret_cast<uint16_t*>(space);
    if (p.transpose_b) {
      pack_rows_along<true>(p.b, right, right_tile);
    } else {
      pack_rows_across<false>(p.b, right, right_tile);
    }
    for (int64_t row = 0; row < m; row += most) {
      const Packed left{row, std::min(most, m - row), tiles,
                        reinterpret_cast<uint16_t*>(space + right.floats())};
      if (p.transpose_a) {
        pack_rows_across<true>(p.a, left, left_tile);
      } else {
        pack_rows_along<false>(p.a, left, left_tile);
      }
      multiply_packed(p, left, right);
    }
  }
}

double amx_spin(int64_t rounds) {
  Tiles tiles;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  for (int64_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  return double(rounds) * 4 * 2 * kAmxSide * kAmxSide * kAmxDepth;
}

}  // namespace finetune::cpu
