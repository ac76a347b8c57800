// bf16 matrix products on tiles: packing, cutting into tasks, writing sums.
#include "ops/cpu/gemm/bf16_gemm.h"

#include <algorithm>

#include "ops/cpu/bf16_tiles/tile_panels.h"
#include "ops/cpu/bf16_tiles/tile_stream.h"
#include "ops/cpu/gemm/bf16_gemm_packed.h"
#include "ops/cpu/tasks.h"

namespace finetune::cpu {
namespace {

constexpr int64_t kPanel = kTileBlock;      // columns of a block of c
constexpr int64_t kBlockRows = kTileBlock;  // and its rows
// Tiles of depth per pass. With tile registers: kPartTiles or, if a task packs as it goes, this
// many, because packed and source data share the second-level cache. With vector registers,
// reloading sums costs more than reading operands from that cache.
constexpr int64_t kPackedPartTiles = 8;
constexpr int64_t kVectorPartTiles = 16;
// At most this much of each operand is packed at a time.
constexpr int64_t kMostPackedBytes = int64_t{8} << 20;
// The largest block of c per task, in rows and panels: its sums fill a quarter of a core's cache.
constexpr int64_t kTaskRows = 256;
constexpr int64_t kTaskPanels = 16;
constexpr int64_t kEnoughTasks = 6;
// With at most this many rows, a packed operand stays in a core's cache beside the task's other
// data: a part of the depth, or all of it.
constexpr int64_t kFewRows = 512;
constexpr int64_t kResidentBytes = int64_t{1} << 20;
constexpr int64_t kTaskBytes = int64_t{896} << 10;

int64_t part_tiles(bool packs) {
  if (!tile_registers) return kVectorPartTiles;
  return packs ? kPackedPartTiles : kPartTiles;
}

template <bool kTranspose, typename Place>
void pack_along_by_all(Tensor x, const Packed& packed, const Place& place) {
  for_tasks(packed.groups(),
            [&](int64_t group) { pack_group_along<kTranspose>(x, packed, group, place); });
}

template <bool kTranspose, typename Place>
void pack_across_by_all(Tensor x, const Packed& packed, const Place& place) {
  for_tasks(packed.tiles, [&](int64_t d) { pack_tile_across<kTranspose>(x, packed, d, place); });
}

Left left_lines(const Product& p, int64_t begin, int64_t count, int64_t tiles) {
  if (p.transpose_a) return {{begin, count, 0, tiles, nullptr}};
  return left_of(p.a, begin, count, tiles);
}

void pack_left_by_all(const Product& p, const Left& left) {
  if (p.transpose_a) {
    pack_across_by_all<true>(p.a, left.packed, left_tile);
  } else {
    pack_along_by_all<false>(p.a, left.packed, left_tile);
  }
}

// c's row = sums + bias, written past the caches in whole lines, so that they need not be read
// first. That gains more than the next operation loses by reading c from memory.
void stream_row(const float* sums, const float* bias, int64_t cols, float* c) {
  for (int64_t i = 0; i < cols; i += 16) {
    __m512 v = _mm512_load_ps(sums + i);
    if (bias != nullptr) v = _mm512_add_ps(v, _mm512_loadu_ps(bias + i));
    _mm512_stream_ps(c + i, v);
  }
}

// c's row = sums + bias, or += sums
void write_row(const float* sums, const float* bias, bool accumulate, int64_t cols, float* c) {
  for (int64_t i = 0; i < cols; i += 16) {
    const __mmask16 mask = lane_mask(cols - i);
    __m512 v = _mm512_load_ps(sums + i);
    if (accumulate) {
      v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, c + i));
    } else if (bias != nullptr) {
      v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, bias + i));
    }
    _mm512_mask_storeu_ps(c + i, mask, v);
  }
}

// c's row in bf16 = sums + bias, written past the caches in whole lines (kStream) or normally.
template <bool kStream>
void round_row(const float* sums, const float* bias, int64_t cols, bfloat16* c) {
  for (int64_t i = 0; i < cols; i += 32) {
    const __mmask16 low = lane_mask(cols - i), high = lane_mask(cols - i - 16);
    __m512 a = _mm512_load_ps(sums + i), b = _mm512_load_ps(sums + i + 16);
    if (bias != nullptr) {
      a = _mm512_add_ps(a, _mm512_maskz_loadu_ps(low, bias + i));
      b = _mm512_add_ps(b, _mm512_maskz_loadu_ps(high, bias + i + 16));
    }
    const __m512i both = round_to_bf16(a, b);
    if constexpr (kStream) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(c + i), both);
    } else {
      _mm512_mask_storeu_epi16(c + i, __mmask32(low) | __mmask32(high) << 16, both);
    }
  }
}

// A block of c: 32-row blocks of left from line `row` on, and panels of right from `panel` on.
struct Block {
  int64_t row, rows, panel, panels;
  int64_t width() const { return panels * kPanel; }
};

// sums (rows, width) = or += the block's products over `depth` tiles: left's from tile l on,
// right's from tile r on.
void add_products(const Block& block, const Left& left, int64_t l, const Right& right, int64_t r,
                  int64_t depth, bool add, float* sums) {
  for (int64_t row = 0; row < block.rows; row += kBlockRows) {
    for (int64_t i = 0; i < block.panels; ++i) {
      block_product<Passing::panels>(block.rows - row, left.block(block.row + row, l),
                                     left.layout(block.row + row), right.at(block.panel + i, r),
                                     depth, sums + row * block.width() + i * kPanel, block.width(),
                                     add);
    }
  }
}

void write_rounded(const Product& p, const float* sums, int64_t width, int64_t row, int64_t rows,
                   int64_t col, int64_t cols) {
  bfloat16* const to = p.c.as<bfloat16>() + row * p.c.stride + col;
  const bool whole_lines =
      reinterpret_cast<uintptr_t>(to) % 64 == 0 && p.c.stride % 32 == 0 && cols % 32 == 0;
  const float* bias = p.bias ? p.bias.f32() + col : nullptr;
  for (int64_t r = 0; r < rows; ++r) {
    whole_lines ? round_row<true>(sums + r * width, bias, cols, to + r * p.c.stride)
                : round_row<false>(sums + r * width, bias, cols, to + r * p.c.stride);
  }
  if (whole_lines) _mm_sfence();
}

// c's rows from `row` on and columns from `col` on, = or += sums (rows, width).
void write_sums(const Product& p, const float* sums, int64_t width, int64_t row, int64_t rows,
                int64_t col, int64_t cols) {
  if (p.c.dtype == DType::bf16) return write_rounded(p, sums, width, row, rows, col, cols);
  float* const to = p.c.f32() + row * p.c.stride + col;
  const bool whole_lines =
      reinterpret_cast<uintptr_t>(to) % 64 == 0 && p.c.stride % 16 == 0 && cols % 16 == 0;
  const float* bias = p.bias ? p.bias.f32() + col : nullptr;
  if (!p.accumulate && whole_lines) {
    for (int64_t r = 0; r < rows; ++r) {
      stream_row(sums + r * width, bias, cols, to + r * p.c.stride);
    }
    _mm_sfence();
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    write_row(sums + r * width, bias, p.accumulate, cols, to + r * p.c.stride);
  }
}

// A block of c from packed operands. Its sums are computed in cache, one part of the depth at a
// time so that the operands stay there too, and written in whole rows, because narrower writes to
// memory are slow.
void task_product(const Product& p, const Left& left, const Right& right, const Block& block) {
  const int64_t tiles = left.tiles(), col = right.begin + block.panel * kPanel;
  float* sums = scratch(Scratch::task, round_up(block.rows, kBlockRows) * block.width());
  const Tiles config;
  const int64_t most = part_tiles(false);
  for (int64_t part = 0; part < tiles; part += most) {
    add_products(block, left, part, right, part, std::min(most, tiles - part), part > 0, sums);
  }
  write_sums(p, sums, block.width(), left.begin() + block.row, block.rows, col,
             std::min(block.width(), right.begin + right.count - col));
}

void multiply_packed(const Product& p, const Left& left, const Right& right) {
  const int64_t panels = right.panels(), lines = left.count();
  const int64_t down = (lines + kTaskRows - 1) / kTaskRows;
  const int64_t rows = round_up((lines + down - 1) / down, kBlockRows);
  const int64_t wanted = std::max<int64_t>(1, panels * down / kEnoughTasks);
  const int64_t per_task = std::min(kTaskPanels, wanted);
  const int64_t across = (panels + per_task - 1) / per_task;
  for_tasks(down * across, [&](int64_t task) {
    const int64_t row = task % down * rows, panel = task / down * per_task;
    if (row >= lines) return;
    task_product(p, left, right,
                 {row, std::min(rows, lines - row), panel, std::min(per_task, panels - panel)});
  });
}

int64_t tiles_of(int64_t depth) {
  return (depth + kTileDepth - 1) / kTileDepth;
}

// The number of lines of one operand for a task, so that the packed lines and their sums with all
// `others` lines of the other operand fit its share of a core's cache; as even as possible.
int64_t lines_of_task(int64_t lines, int64_t others, int64_t tiles) {
  const int64_t bytes =
      kPanel * (others * int64_t(sizeof(float)) +
                std::min(part_tiles(true), tiles) * kTileDepth * int64_t(sizeof(uint16_t)));
  const int64_t panels = (lines + kPanel - 1) / kPanel;
  const int64_t most = std::max<int64_t>(1, kTaskBytes / bytes);
  const int64_t tasks = round_up((panels + most - 1) / most, threads());
  return (panels + tasks - 1) / tasks * kPanel;
}

template <typename Body>  // body(first line, number of lines)
void for_line_tasks(int64_t lines, int64_t per_task, const Body& body) {
  for_tasks((lines + per_task - 1) / per_task, [&](int64_t task) {
    const int64_t begin = task * per_task;
    body(begin, std::min(per_task, lines - begin));
  });
}

Left pack_all_rows(const Product& p, int64_t tiles) {
  Left left = left_lines(p, 0, p.c.rows, tiles);
  left.packed.data = reinterpret_cast<uint16_t*>(scratch(Scratch::operation, left.packed.floats()));
  pack_left_by_all(p, left);
  return left;
}

// For few rows of c and panels of b that are packed one after the other: used in place.
void multiply_few_rows_packed(const Product& p) {
  const int64_t m = p.c.rows, n = p.c.cols, tiles = tiles_of(p.depth());
  const Left left = pack_all_rows(p, tiles);
  const int64_t rows = round_up(m, kBlockRows);
  for_line_tasks(n, lines_of_task(n, rows, tiles), [&](int64_t col, int64_t cols) {
    task_product(p, left, packed_right(p, col, cols), {0, m, 0, (cols + kPanel - 1) / kPanel});
  });
}

// For few rows of c: each task packs its own columns of b, one part of the depth at a time, and
// multiplies them while they are in its cache. So b, usually a weight matrix, is read once and not
// written back.
void multiply_few_rows(const Product& p) {
  const int64_t m = p.c.rows, n = p.c.cols, tiles = tiles_of(p.depth()), most = part_tiles(true);
  const Left left = pack_all_rows(p, tiles);
  const int64_t rows = round_up(m, kBlockRows);
  for_line_tasks(n, lines_of_task(n, rows, tiles), [&](int64_t col, int64_t cols) {
    const Block block{0, m, 0, (cols + kPanel - 1) / kPanel};
    const int64_t width = block.width();
    float* sums = scratch(Scratch::task, rows * width + width * most * kTileDepth / 2);
    const Tiles config;
    for (int64_t part = 0; part < tiles; part += most) {
      const Packed right{col, cols, part, std::min(most, tiles - part),
                         reinterpret_cast<uint16_t*>(sums + rows * width)};
      if (p.packed_b) {
        copy_packed(p, right);
      } else if (p.transpose_b) {
        for (int64_t group = 0; group < right.groups(); ++group) {
          pack_group_along<true>(p.b, right, group, panel_tile);
        }
      } else {
        for (int64_t d = 0; d < right.tiles; ++d) {
          pack_tile_across<false>(p.b, right, d, panel_tile);
        }
      }
      add_products(block, left, part, right_of(right), 0, right.tiles, part > 0, sums);
    }
    write_sums(p, sums, width, 0, m, col, cols);
  });
}

// The same for few columns of a weight gradient: each task packs its own rows of op(a).
void multiply_few_cols(const Product& p) {
  const int64_t m = p.c.rows, n = p.c.cols, tiles = tiles_of(p.depth()), most = part_tiles(true);
  Packed right{0, n, 0, tiles, nullptr};
  right.data = reinterpret_cast<uint16_t*>(scratch(Scratch::operation, right.floats()));
  pack_across_by_all<false>(p.b, right, panel_tile);
  const int64_t width = round_up(n, kPanel);
  for_line_tasks(m, lines_of_task(m, width, tiles), [&](int64_t row, int64_t rows) {
    const Block block{0, rows, 0, width / kPanel};
    const int64_t padded = round_up(rows, kBlockRows);
    float* sums = scratch(Scratch::task, padded * (width + most * kTileDepth / 2));
    const Tiles config;
    for (int64_t part = 0; part < tiles; part += most) {
      const Packed left{row, rows, part, std::min(most, tiles - part),
                        reinterpret_cast<uint16_t*>(sums + padded * width)};
      for (int64_t d = 0; d < left.tiles; ++d) pack_tile_across<true>(p.a, left, d, left_tile);
      add_products(block, {left}, 0, right_of(right), part, left.tiles, part > 0, sums);
    }
    write_sums(p, sums, width, row, rows, 0, n);
  });
}

}  // namespace

bool enable_tile_registers() {
  static const bool enabled = has_tile_instructions();
  return enabled;
}

void use_tile_registers(bool use) {
  tile_registers = use;
}

void bf16_gemm_tiles(const Product& p) {
  const int64_t m = p.c.rows, n = p.c.cols, tiles = tiles_of(p.depth());
  FINETUNE_CHECK(tiles > 0);
  const int64_t packed = std::min(m, n) * tiles * kTileDepth * int64_t(sizeof(uint16_t));
  if (!p.transpose_a && m <= kFewRows) {
    return p.packed_b && p.transpose_b ? multiply_few_rows_packed(p) : multiply_few_rows(p);
  }
  if (p.transpose_a && packed <= kResidentBytes) {
    return m < n ? multiply_few_rows(p) : multiply_few_cols(p);
  }
  const int64_t most = std::max(
      kMostPackedBytes / (tiles * kTileDepth * int64_t(sizeof(uint16_t))) / kPanel * kPanel,
      kPanel);
  int64_t largest_left = 0;
  for (int64_t row = 0; row < m; row += most) {
    const Left left = left_lines(p, row, std::min(most, m - row), tiles);
    largest_left = std::max(largest_left, left.packed.floats());
  }
  const auto multiply_rows = [&](const Right& right, float* space) {
    for (int64_t row = 0; row < m; row += most) {
      Left left = left_lines(p, row, std::min(most, m - row), tiles);
      left.packed.data = reinterpret_cast<uint16_t*>(space);
      pack_left_by_all(p, left);
      multiply_packed(p, left, right);
    }
  };
  if (p.packed_b) {
    return multiply_rows(packed_right(p, 0, n), scratch(Scratch::operation, largest_left));
  }
  for (int64_t col = 0; col < n; col += most) {
    Packed right{col, std::min(most, n - col), 0, tiles, nullptr};
    float* space = scratch(Scratch::operation, right.floats() + largest_left);
    right.data = reinterpret_cast<uint16_t*>(space);
    if (p.transpose_b) {
      pack_along_by_all<true>(p.b, right, panel_tile);
    } else {
      pack_across_by_all<false>(p.b, right, panel_tile);
    }
    multiply_rows(right_of(right), space + right.floats());
  }
}

double tile_spin(int64_t rounds) {
  if (!tile_registers) return dot_spin(rounds);
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
  return double(rounds) * 4 * 2 * kTileSide * kTileSide * kTileDepth;
}

}  // namespace finetune::cpu
