#include "ops/cpu/panel_gemm.h"

#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/panel_gemm.cpp"
#include <cstring>

#include "core/error.h"
#include "hwy/foreach_target.h"
#include "ops/cpu/fp32_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {
namespace {

// Of op(a) groups of so many rows are packed, of op(b) panels of so many columns.
constexpr int64_t kGroup = kTileRows, kPanel = 2 * kLanes;
// Depth that is multiplied at once: a panel's part stays in the first-level cache.
constexpr int64_t kPart = 6144 / kPanel;
constexpr int64_t kRowsAhead = 4;
// Of the operand that all tasks share a task multiplies at most so many lines, and so many of its
// own that the sums fill part of the second-level cache.
constexpr int64_t kMostShared = 768;
constexpr int64_t kSumBytes = int64_t{192} << 10;
// Of the shared operand a task packs at most so many lines.
constexpr int64_t kPackedLines = 96;

// Rows of op(a) or columns of op(b): lines of memory that lie along the depth, or across it.
struct Lines {
  Tensor x;
  bool along;
  int64_t unit;  // lines of a group or panel

  int64_t count() const { return along ? x.rows : x.cols; }
};

// Lines across the depth, row of memory by row.
template <int64_t kUnit>
void pack_across(const float* from, int64_t stride, int64_t count, int64_t depth, float* to) {
  const int64_t whole = count / kUnit * kUnit;
  for (int64_t k = 0; k < depth; ++k, from += stride, to += kUnit) {
    prefetch(from + kRowsAhead * stride, 0, 1, count);
    for (int64_t i = 0; i < whole; i += kUnit) {
      std::memcpy(to + i * depth, from + i, size_t(kUnit) * sizeof(float));
    }
    for (int64_t i = whole; i < cpu::round_up(count, kUnit); ++i) {
      to[whole * depth + i - whole] = i < count ? from[i] : 0.0f;
    }
  }
}

// `count` lines from `line` on, and their depth from `first` on, as units: (depth, unit) each, one
// after the other. Lines that are missing in the last one are zero.
void pack_lines(const Lines& lines, int64_t line, int64_t count, int64_t first, int64_t depth,
                float* to) {
  const Tensor& x = lines.x;
  if (!lines.along) {
    const auto pack = lines.unit == kGroup ? pack_across<kGroup> : pack_across<kPanel>;
    return pack(x.f32() + first * x.stride + line, x.stride, count, depth, to);
  }
  for (int64_t i = 0; i < count; i += lines.unit, to += lines.unit * depth) {
    pack_transposed(x.f32() + (line + i) * x.stride + first, x.stride,
                    HWY_MIN(lines.unit, count - i), depth, 1.0f, to, lines.unit, 0);
  }
}

// Some rows and columns of c.
struct Block {
  int64_t row, rows, col, cols;
};

// The block = or += groups (rows) * panels (cols) of `depth`; a group's part lies `group_step`
// floats from the one before, a panel's `panel_step`.
void multiply_part(const cpu::Product& p, const Block& block, const float* groups,
                   int64_t group_step, const float* panels, int64_t panel_step, int64_t depth,
                   bool add) {
  HWY_ALIGN float edge[kGroup * kPanel];
  for (int64_t i = 0; i < block.cols; i += kPanel, panels += panel_step) {
    const int64_t cols = HWY_MIN(kPanel, block.cols - i);
    const float* group = groups;
    for (int64_t r = 0; r < block.rows; r += kGroup, group += group_step) {
      const int64_t rows = HWY_MIN(kGroup, block.rows - r);
      float* c = p.c.f32() + (block.row + r) * p.c.stride + block.col + i;
      const Left left{group, kGroup};
      if (cols == kPanel) {
        tile_of<true, kTileRows, 2>(rows, left, panels, kPanel, c, p.c.stride, depth, add);
        continue;
      }
      for (int64_t k = 0; add && k < rows; ++k) {
        std::memcpy(edge + k * kPanel, c + k * p.c.stride, size_t(cols) * sizeof(float));
      }
      tile_of<true, kTileRows, 2>(rows, left, panels, kPanel, edge, kPanel, depth, add);
      for (int64_t k = 0; k < rows; ++k) {
        std::memcpy(c + k * p.c.stride, edge + k * kPanel, size_t(cols) * sizeof(float));
      }
    }
  }
}

// The lines in even pieces, multiples of `unit`, of at most `most`.
int64_t even_piece(int64_t lines, int64_t most, int64_t unit, int64_t multiple_of) {
  const int64_t pieces = cpu::round_up((lines + most - 1) / most, multiple_of);
  return cpu::round_up((lines + pieces - 1) / pieces, unit);
}

// One operand is packed by all and shared; of the other each task packs its own lines, a part of
// the depth at a time, and multiplies them while they are in its cache.
void multiply(const cpu::Product& p) {
  const int64_t depth = p.depth();
  const Lines left{p.a, !p.transpose_a, kGroup}, right{p.b, p.transpose_b, kPanel};
  const bool share_left = left.count() <= right.count();
  const Lines& shared = share_left ? left : right;
  const Lines& own = share_left ? right : left;

  float* packed =
      cpu::scratch(cpu::Scratch::operation, cpu::round_up(shared.count(), shared.unit) * depth);
  const int64_t lines = even_piece(shared.count(), kPackedLines, shared.unit, 1);
  cpu::for_tasks((shared.count() + lines - 1) / lines, [&](int64_t i) {
    const int64_t line = i * lines;
    pack_lines(shared, line, HWY_MIN(lines, shared.count() - line), 0, depth,
               packed + line * depth);
  });

  const int64_t across = even_piece(shared.count(), kMostShared, shared.unit, 1);
  const int64_t most =
      HWY_MAX(own.unit, kSumBytes / int64_t{sizeof(float)} / across / own.unit * own.unit);
  const int64_t along = even_piece(own.count(), most, own.unit, threads());
  const int64_t columns = (shared.count() + across - 1) / across;
  const int64_t rows = (own.count() + along - 1) / along;
  cpu::for_tasks(rows * columns, [&](int64_t task) {
    const int64_t s = task % columns * across, o = task / columns * along;
    const int64_t shares = HWY_MIN(across, shared.count() - s);
    const int64_t owns = HWY_MIN(along, own.count() - o);
    const Block block = share_left ? Block{s, shares, o, owns} : Block{o, owns, s, shares};
    float* mine =
        cpu::scratch(cpu::Scratch::task, cpu::round_up(owns, own.unit) * HWY_MIN(kPart, depth));
    for (int64_t first = 0; first < depth; first += kPart) {
      const int64_t part = HWY_MIN(kPart, depth - first);
      pack_lines(own, o, owns, first, part, mine);
      const float* theirs = packed + s * depth + first * shared.unit;
      const bool add = p.accumulate || first > 0;
      if (share_left) {
        multiply_part(p, block, theirs, kGroup * depth, mine, kPanel * part, part, add);
      } else {
        multiply_part(p, block, mine, kGroup * part, theirs, kPanel * depth, part, add);
      }
    }
    if (!p.bias) return;
    float* c = p.c.f32() + block.row * p.c.stride + block.col;
    cpu::add_bias(p.bias.f32() + block.col, {c, DType::f32, block.rows, block.cols, p.c.stride});
  });
}

}  // namespace
}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace finetune {
HWY_EXPORT(multiply);

void cpu::panel_multiply(const Product& p) {
  check(p);
  FINETUNE_CHECK(p.depth() > 0);
  if (p.c.size() == 0) return;
  HWY_DYNAMIC_DISPATCH(multiply)(p);
}

}  // namespace finetune
#endif
