// fp32 matrix products: cutting into tasks, packing panels, the microkernel's loop.
#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/gemm/fp32_gemm.cpp"
#include <cstring>

#include "core/error.h"
#include "hwy/foreach_target.h"
#include "ops/cpu/gemm/fp32_microkernel-inl.h"
#include "ops/cpu/gemm/gemm.h"
#include "ops/cpu/isa.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {
namespace {

// A tile of sums covers a group of op(a)'s rows and a panel of op(b)'s columns. It leaves 8 (or 4)
// of the 32 (or 16) registers free, and needs 35 (or 19) instructions for 24 (or 12)
// multiplications.
constexpr int kGroup = kLanes == 16 ? 8 : 4, kVectors = 3;
constexpr int64_t kPanel = kVectors * kLanes;
// Largest depth per pass.
constexpr int64_t kMostDepth = 384;
constexpr int64_t kRowsAhead = 4;
// Limits of a task: lines of the operand shared by all tasks (fewer if packed, so that they stay in
// the second-level cache), and of its own lines, so that the sums fill part of that cache.
constexpr int64_t kMostShared = 768, kMostPackedShared = 288, kFewestShared = 64;
constexpr int64_t kSumBytes = int64_t{192} << 10;
// A task packs at most this many lines of the shared operand.
constexpr int64_t kPackedLines = 96;
// Packing one unit of its own costs a task as much as this many tiles.
constexpr int64_t kPackingCost = 3;
// The largest number of tasks per thread to consider.
constexpr int64_t kMostRounds = 8;

// Part of a matrix in memory.
struct Piece {
  const float* data = nullptr;
  int64_t stride = 0, rows = 0, cols = 0;
};

// Rows of op(a) or columns of op(b): lines of memory along the depth, or across it.
struct Lines {
  Tensor x;
  bool along;
  int64_t unit;  // lines per group or panel

  int64_t count() const { return along ? x.rows : x.cols; }
  // `lines` lines from `line` on, with depth from `first` on.
  Piece piece(int64_t line, int64_t lines, int64_t first, int64_t depth) const {
    return along ? Piece{x.f32() + line * x.stride + first, x.stride, lines, depth}
                 : Piece{x.f32() + first * x.stride + line, x.stride, depth, lines};
  }
};

// Packs lines across the depth in strips of few units, because these lines collide in the cache's
// sets.
template <int64_t kUnit>
void pack_across(const Piece& from, float* to) {
  constexpr int64_t kStrip = kUnit * HWY_MAX(1, 32 / kUnit);
  for (int64_t i = 0; i < from.cols; i += kStrip, to += kStrip * from.rows) {
    const int64_t cols = HWY_MIN(kStrip, from.cols - i), whole = cols / kUnit * kUnit;
    const float* row = from.data + i;
    for (int64_t k = 0; k < from.rows; ++k, row += from.stride) {
      float* place = to + k * kUnit;
      prefetch(row + kRowsAhead * from.stride, 0, 1, cols);
      for (int64_t j = 0; j < whole; j += kUnit) {
        std::memcpy(place + j * from.rows, row + j, size_t(kUnit) * sizeof(float));
      }
      for (int64_t j = whole; j < cpu::round_up(cols, kUnit); ++j) {
        place[whole * from.rows + j - whole] = j < cols ? row[j] : 0.0f;
      }
    }
  }
}

// Packs `count` lines from `line` on, with depth from `first` on, as units of (depth, unit), one
// after the other. Missing lines of the last unit are zero.
void pack_lines(const Lines& lines, int64_t line, int64_t count, int64_t first, int64_t depth,
                float* to) {
  if (!lines.along) {
    const auto pack = lines.unit == kGroup ? pack_across<kGroup> : pack_across<kPanel>;
    return pack(lines.piece(line, count, first, depth), to);
  }
  for (int64_t i = 0; i < count; i += lines.unit, to += lines.unit * depth) {
    const Piece from = lines.piece(line + i, HWY_MIN(lines.unit, count - i), first, depth);
    pack_transposed(from.data, from.stride, from.rows, depth, 1.0f, to, lines.unit, 0);
  }
}

// Prefetches memory that will be packed next, in steps during a multiplication.
class Upcoming {
 public:
  Upcoming(const Piece& piece, int64_t steps)
      : piece_(piece), lines_((piece.cols + kLine - 1) / kLine), left_(piece.rows * lines_) {
    step_ = (left_ + steps - 1) / steps;
  }

  HWY_INLINE void fetch() {
    const int64_t count = HWY_MIN(step_, left_);
    for (int64_t i = 0; i < count; ++i) {
      hwy::Prefetch(piece_.data + line_ * kLine);
      if (++line_ == lines_) line_ = 0, piece_.data += piece_.stride;
    }
    left_ -= count;
  }

 private:
  static constexpr int64_t kLine = kLineOf<float>;
  Piece piece_;
  int64_t lines_ = 0, left_ = 0, step_ = 0, line_ = 0;
};

// Rows of op(a) for a product: groups begin `step` floats apart.
struct Groups {
  Left left;
  int64_t step;
};

// A packed panel. `from`: its columns in memory, if the first group's tile must pack them.
struct Panel {
  float* packed;
  Piece from = {};
};

// c (rows, up to kPanel) = or += op(a) * panel, then bias if not null. With `packed_rows`, whole
// groups of rows are also written there, packed.
template <bool kTranspose>
void multiply_panel(Groups groups, float* packed_rows, const Panel& panel, Tensor c, int64_t depth,
                    bool add, const float* bias, Upcoming upcoming) {
  HWY_ALIGN float edge[kGroup * kPanel];
  HWY_ALIGN float edge_bias[kPanel] = {};
  if (bias && c.cols < kPanel) {
    std::memcpy(edge_bias, bias, size_t(c.cols) * sizeof(float));
    bias = edge_bias;
  }
  float *out = c.f32(), *const to = panel.packed;
  Left& left = groups.left;
  for (int64_t r = 0; r < c.rows; r += kGroup) {
    const int64_t rows = HWY_MIN(kGroup, c.rows - r);
    prefetch(out + kGroup * c.stride, c.stride, HWY_MIN(kGroup, c.rows - r - rows), c.cols);
    upcoming.fetch();
    if (c.cols < kPanel) {
      for (int64_t k = 0; add && k < rows; ++k) {
        std::memcpy(edge + k * kPanel, out + k * c.stride, size_t(c.cols) * sizeof(float));
      }
      tile_of<kTranspose, kGroup, kVectors>(rows, left, to, kPanel, edge, kPanel, depth, add, bias);
      for (int64_t k = 0; k < rows; ++k) {
        std::memcpy(out + k * c.stride, edge + k * kPanel, size_t(c.cols) * sizeof(float));
      }
    } else if (r == 0 && panel.from.data) {
      tile<kTranspose, kGroup, kVectors, PackedByTile::right>(
          left, panel.from.data, panel.from.stride, out, c.stride, depth, add, bias, to);
    } else if (kTranspose && packed_rows && rows == kGroup) {
      tile<true, kGroup, kVectors, PackedByTile::left>(left, to, kPanel, out, c.stride, depth, add,
                                                       bias, packed_rows + r * depth);
    } else {
      tile_of<kTranspose, kGroup, kVectors>(rows, left, to, kPanel, out, c.stride, depth, add,
                                            bias);
    }
    left.data += groups.step;
    out += kGroup * c.stride;
  }
}

// The size of nearly even parts of `count` that is at most `most`.
int64_t even_part(int64_t count, int64_t most) {
  const int64_t parts = (count + most - 1) / most;
  return (count + parts - 1) / parts;
}

// Lines in pieces with nearly equal numbers of units.
struct Pieces {
  explicit Pieces(const Lines& lines)
      : count(lines.count()), unit(lines.unit), units((count + unit - 1) / unit) {}

  void cut(int64_t pieces) { number = HWY_MAX(1, HWY_MIN(pieces, units)); }
  int64_t begin(int64_t i) const { return HWY_MIN(count, units * i / number * unit); }
  int64_t size(int64_t i) const { return begin(i + 1) - begin(i); }
  int64_t most() const { return (units + number - 1) / number * unit; }

  int64_t count, unit, units, number = 1;
};

// Cuts both operands so that the slowest thread ends as early as possible, counting tiles and
// packed units, and tasks fit the second-level cache, with at most `most_shared` lines of `shares`.
void cut(Pieces& shares, Pieces& owns, int64_t most_shared) {
  const int64_t least = (shares.count + most_shared - 1) / most_shared;
  const int64_t most =
      HWY_MIN(HWY_MAX(least, shares.count / kFewestShared), least + 2 * int64_t{threads()});
  int64_t best = INT64_MAX, best_shares = 1, best_owns = 1;
  for (int64_t number = least; number <= most; ++number) {
    shares.cut(number);
    const int64_t lines = kSumBytes / int64_t{sizeof(float)} / shares.most();
    for (int64_t rounds = 1; rounds <= kMostRounds; ++rounds) {
      owns.cut(HWY_MAX(rounds * threads() / shares.number, (owns.count + lines - 1) / lines));
      const int64_t in_turn = (shares.number * owns.number + threads() - 1) / threads();
      const int64_t time =
          in_turn * (shares.most() / shares.unit + kPackingCost) * (owns.most() / owns.unit);
      if (time >= best) continue;
      best = time, best_shares = shares.number, best_owns = owns.number;
    }
  }
  shares.cut(best_shares);
  owns.cut(best_owns);
}

// A range of rows and columns of c.
struct Block {
  int64_t row, rows, col, cols;
};

// A product and its operands. If rows of op(a) are along the depth, they are used in place, and
// each task packs its panels itself, one at a time. If they are across it (weight gradients), all
// tasks first pack the shared panels together, and each packs its own rows.
class PanelProduct {
 public:
  explicit PanelProduct(const cpu::Product& p)
      : p_(p), left_{p.a, !p.transpose_a, kGroup}, right_{p.b, p.transpose_b, kPanel} {}

  void run() {
    if (gradient_) pack_panels();
    Pieces rows(left_), cols(right_);
    Pieces &shared = gradient_ ? cols : rows, &own = gradient_ ? rows : cols;
    cut(shared, own, gradient_ ? kMostPackedShared : kMostShared);
    // A thread starts with neighbouring tasks, which share their common operand.
    cpu::for_tasks(rows.number * cols.number, [&](int64_t task) {
      const int64_t s = task / own.number, o = task % own.number;
      const int64_t r = gradient_ ? o : s, c = gradient_ ? s : o;
      const Block block{rows.begin(r), rows.size(r), cols.begin(c), cols.size(c)};
      for (int64_t first = 0; first < depth_; first += part_) {
        gradient_ ? multiply_own_rows(block, first) : multiply_own_panels(block, first);
      }
    });
  }

 private:
  int64_t part_at(int64_t first) const { return HWY_MIN(part_, depth_ - first); }

  Tensor sums(const Block& block, int64_t col, int64_t cols) const {
    return {p_.c.f32() + block.row * p_.c.stride + block.col + col, DType::f32, block.rows, cols,
            p_.c.stride};
  }

  // One part of the depth after the other, each with all panels.
  void pack_panels() {
    padded_ = cpu::round_up(right_.count(), kPanel);
    packed_ = cpu::scratch(cpu::Scratch::operation, padded_ * depth_);
    Pieces pieces(right_);
    pieces.cut((right_.count() + kPackedLines - 1) / kPackedLines);
    cpu::for_tasks(pieces.number, [&](int64_t i) {
      for (int64_t first = 0; first < depth_; first += part_) {
        pack_lines(right_, pieces.begin(i), pieces.size(i), first, part_at(first),
                   panel_at(pieces.begin(i), first));
      }
    });
  }
  float* panel_at(int64_t col, int64_t first) const {
    return packed_ + first * padded_ + col * part_at(first);
  }

  // For one part of the depth; the next panel is prefetched during the multiplication.
  void multiply_own_panels(const Block& block, int64_t first) const {
    const int64_t part = part_at(first);
    float* packed = cpu::scratch(cpu::Scratch::task, kPanel * part_);
    const Piece rows = left_.piece(block.row, block.rows, first, part);
    const bool biased = p_.bias && first + part == depth_;
    for (int64_t i = 0; i < block.cols; i += kPanel) {
      const int64_t cols = HWY_MIN(kPanel, block.cols - i);
      Panel panel{packed};
      if (!right_.along && cols == kPanel && block.rows >= kGroup) {
        panel.from = right_.piece(block.col + i, cols, first, part);
      } else {
        pack_lines(right_, block.col + i, cols, first, part, packed);
      }
      const bool last = i + kPanel >= block.cols;
      const int64_t next = last ? 0 : i + kPanel, then = last ? first + part : first;
      const Piece upcoming =
          right_.piece(block.col + next, HWY_MIN(kPanel, block.cols - next), then, part_at(then));
      multiply_panel<false>({{rows.data, rows.stride}, kGroup * rows.stride}, nullptr, panel,
                            sums(block, i, cols), part, p_.accumulate || first > 0,
                            biased ? p_.bias.f32() + block.col + i : nullptr,
                            Upcoming(upcoming, (block.rows + kGroup - 1) / kGroup));
    }
  }

  // The same with rows, which the first panel's tiles pack.
  void multiply_own_rows(const Block& block, int64_t first) const {
    const int64_t part = part_at(first), whole = block.rows / kGroup * kGroup;
    float* packed = cpu::scratch(cpu::Scratch::task, cpu::round_up(block.rows, kGroup) * part_);
    const Piece rows = left_.piece(block.row, block.rows, first, part);
    const bool again = block.cols > kPanel;  // packed rows are used again only then
    if (again && whole < block.rows) {
      pack_lines(left_, block.row + whole, block.rows - whole, first, part, packed + whole * part);
    }
    for (int64_t i = 0; i < block.cols; i += kPanel) {
      const Groups groups = i == 0 ? Groups{{rows.data, rows.stride}, kGroup}
                                   : Groups{{packed, kGroup}, kGroup * part};
      float* panel = panel_at(block.col + i, first);
      const Piece upcoming{panel + kPanel * part, 0, i + kPanel < block.cols, kPanel * part};
      multiply_panel<true>(groups, i == 0 && again ? packed : nullptr, {panel},
                           sums(block, i, HWY_MIN(kPanel, block.cols - i)), part,
                           p_.accumulate || first > 0, nullptr,
                           Upcoming(upcoming, (block.rows + kGroup - 1) / kGroup));
    }
  }

  const cpu::Product& p_;
  const Lines left_, right_;
  const bool gradient_ = !left_.along;
  const int64_t depth_ = p_.depth(), part_ = even_part(depth_, kMostDepth);
  float* packed_ = nullptr;
  int64_t padded_ = 0;
};

void fp32_gemm(const cpu::Product& p) {
  PanelProduct(p).run();
}

}  // namespace
}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace finetune {
HWY_EXPORT(fp32_gemm);

void cpu::fp32_gemm(const Product& p) {
  select_isa();
  check(p);
  FINETUNE_CHECK(p.depth() > 0);
  if (p.c.size() == 0) return;
  HWY_DYNAMIC_DISPATCH(fp32_gemm)(p);
}

}  // namespace finetune
#endif
