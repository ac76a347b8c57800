// First half of an encoder layer in inference: projections and self-attention.
#include <algorithm>
#include <cstring>

#include "ops/cpu/bf16_tiles/bf16_math.h"
#include "ops/cpu/bf16_tiles/tile_blocks.h"
#include "ops/cpu/bf16_tiles/tile_panels.h"
#include "ops/cpu/bf16_tiles/tile_stream.h"
#include "ops/cpu/encoder_layer/tile_layer.h"
#include "ops/cpu/tasks.h"

namespace finetune::cpu {
namespace {

// The packed weights, head by head in the order of their use, in units of 32 lines. Those of
// queries and values are left operands, whose products are transposed, (head_size, tokens); those
// of keys are right operands, with products (tokens, head_size).
struct Weights {
  int64_t heads, blocks;  // of 32 lines in a head
  int64_t tiles;          // of depth
  uint16_t* data;

  enum Kind { query, value, key };
  int64_t unit() const { return tiles * kPanelTile; }
  int64_t floats() const { return 3 * heads * blocks * unit() / 2; }
  uint16_t* at(int64_t head, Kind kind) const { return data + (3 * head + kind) * blocks * unit(); }
};

void pack(Tensor weight, const Weights& to) {
  const int64_t lines = to.blocks * kTileBlock;
  for_tasks(3 * to.heads, [&](int64_t i) {
    const int64_t head = i / 3;
    const auto kind = Weights::Kind(i % 3);
    // The order in memory is queries, keys, values.
    const int64_t third = kind == Weights::query ? 0 : kind == Weights::key ? 1 : 2;
    const Packed packed{third * to.heads * lines + head * lines, lines, 0, to.tiles,
                        to.at(head, kind)};
    for (int64_t group = 0; group < packed.groups(); ++group) {
      if (kind == Weights::key) {
        pack_group_along<true>(weight, packed, group, panel_tile);
      } else {
        pack_group_along<false>(weight, packed, group, panel_tile);
      }
    }
  });
}

// Neighbouring sequences that one task computes.
struct Group {
  int64_t first, end;  // sequences
};

int64_t make_groups(const Segments& keys, int64_t most, Group* groups) {
  int64_t count = 0;
  for (int64_t b = 0; b < keys.count;) {
    const int64_t first = b++;
    while (b < keys.count && keys.offsets[b + 1] - keys.offsets[first] <= most) ++b;
    groups[count++] = {first, b};
  }
  return count;
}

// c (32, cols) = a's 32 lines times the columns of `b`, right panels of `tiles` tiles of depth.
// Prefetches the memory behind a's part of the depth.
void multiply_lines(const uint16_t* a, const uint16_t* b, int64_t tiles, int64_t cols, float* c) {
  for (int64_t part = 0; part < tiles; part += kPartTiles) {
    const int64_t depth = std::min(kPartTiles, tiles - part);
    const uint16_t* left = a + part * kPanelTile;
    for (int64_t col = 0; col < cols; col += kTileBlock) {
      const uint16_t* right = b + (col / kTileBlock * tiles + part) * kPanelTile;
      block_product<Passing::panels>(kTileBlock, left, kInPanel, right, depth, c + col, cols,
                                     part > 0, share_of_next(left, depth, col / kTileBlock));
    }
  }
}

// One head of a group in bf16. Tiles begin at any row (keys) or column (queries, values).
struct Head {
  uint32_t* queries;  // pairs of rows of (head_size, queries): (head_size / 2, query_stride)
  int64_t query_stride;
  uint16_t* keys;    // (tokens, head_size)
  uint16_t* values;  // (head_size, value_stride)
  int64_t value_stride;
};

// Stores (32, cols) of `strip`, plus a bias per row, times `factor`, as pairs of rows.
void store_queries(const float* strip, const float* bias, float factor, int64_t cols, uint32_t* to,
                   int64_t stride) {
  const __m512 scale = _mm512_set1_ps(factor);
  for (int64_t r = 0; r < kTileBlock; r += 2) {
    const __m512 even = _mm512_set1_ps(bias[r]), odd = _mm512_set1_ps(bias[r + 1]);
    for (int64_t i = 0; i < cols; i += 16) {
      const __m512 a = _mm512_add_ps(_mm512_load_ps(strip + r * cols + i), even);
      const __m512 b = _mm512_add_ps(_mm512_load_ps(strip + (r + 1) * cols + i), odd);
      _mm512_storeu_si512(to + r / 2 * stride + i,
                          bf16_pairs(_mm512_mul_ps(a, scale), _mm512_mul_ps(b, scale)));
    }
  }
}

void store_values(const float* strip, const float* bias, int64_t cols, uint16_t* to,
                  int64_t stride) {
  for (int64_t r = 0; r < kTileBlock; ++r) {
    const __m512 b = _mm512_set1_ps(bias[r]);
    for (int64_t i = 0; i < cols; i += 32) {
      const __m512 low = _mm512_load_ps(strip + r * cols + i);
      const __m512 high = _mm512_load_ps(strip + r * cols + i + 16);
      _mm512_storeu_si512(to + r * stride + i,
                          round_to_bf16(_mm512_add_ps(low, b), _mm512_add_ps(high, b)));
    }
  }
}

// Stores (rows, 32) of `strip`, plus a bias per column.
void store_keys(const float* strip, const float* bias, int64_t rows, uint16_t* to, int64_t stride) {
  const __m512 low = _mm512_loadu_ps(bias), high = _mm512_loadu_ps(bias + 16);
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = strip + r * kTileBlock;
    _mm512_store_si512(to + r * stride,
                       round_to_bf16(_mm512_add_ps(_mm512_load_ps(from), low),
                                     _mm512_add_ps(_mm512_load_ps(from + 16), high)));
  }
}

// Scratch space for attention of one sequence.
struct Space {
  float* scores;  // (keys, 32)
  uint16_t* p;    // right operand: (keys, 32)
  float* sums;    // (head_size, 32)
};

// For 16 queries: p = exp2(scores - largest), zero up to a tile's depth; returns 1 / their sum. The
// maximum ignores NaN but the sum does not, so a NaN reaches the output.
__m512 exponentials(const float* scores, int64_t keys, uint16_t* p) {
  __m512 most = _mm512_load_ps(scores);
  for (int64_t i = 1; i < keys; ++i) {
    most = _mm512_max_ps(_mm512_load_ps(scores + i * kTileBlock), most);
  }
  __m512 sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < round_up(keys, kTileDepth); i += 2) {
    __m512 even = _mm512_setzero_ps(), odd = even;
    if (i < keys) {
      even = exp2_of(_mm512_sub_ps(_mm512_load_ps(scores + i * kTileBlock), most));
      sum = _mm512_add_ps(sum, even);
    }
    if (i + 1 < keys) {
      odd = exp2_of(_mm512_sub_ps(_mm512_load_ps(scores + (i + 1) * kTileBlock), most));
      sum = _mm512_add_ps(sum, odd);
    }
    _mm512_store_si512(p + i / kTileDepth * kPanelTile + i % kTileDepth * 16,
                       bf16_pairs(even, odd));
  }
  return _mm512_div_ps(_mm512_set1_ps(1.0f), sum);
}

// context (count <= 16, head_size) = the transpose of sums (head_size, 16) * inverse
void store_context(const float* sums, __m512 inverse, int64_t count, int64_t size, uint16_t* to,
                   int64_t stride) {
  alignas(64) uint16_t turned[kTileSize];  // (16, 16) floats
  for (int64_t i = 0; i < size; i += kTileSide) {
    __m512i r[16];
#pragma GCC unroll 16
    for (int k = 0; k < 16; ++k) {
      r[k] = (__m512i)_mm512_mul_ps(_mm512_load_ps(sums + (i + k) * kTileBlock), inverse);
    }
    store_transposed(r, turned);
    for (int64_t q = 0; q < count; ++q) {
      const __m512 row = _mm512_load_ps(reinterpret_cast<const float*>(turned) + q * kTileSide);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + q * stride + i),
                          (__m256i)_mm512_cvtneps_pbh(row));
    }
  }
}

// Attention of one sequence: its keys begin at row `key` of the head, its queries at column
// `query`.
void attend(const Head& head, int64_t size, int64_t key, int64_t keys, int64_t query,
            int64_t queries, const Space& space, uint16_t* context, int64_t stride) {
  const int64_t depth = size / kTileDepth, tiles = (keys + kTileDepth - 1) / kTileDepth;
  for (int64_t first = 0; first < queries; first += kTileBlock) {
    const int64_t count = std::min(kTileBlock, queries - first);
    const bool wide = count > kTileSide;
    const Operand right{head.queries + query + first, size_t(head.query_stride) * 4, 4 * kTileSide,
                        4 * kTileSide * head.query_stride};
    for (int64_t k = 0; k < keys; k += kTileBlock) {
      const Operand left{head.keys + (key + k) * size, size_t(size) * 2, 2 * kTileSide * size,
                         2 * kTileDepth};
      small_block(keys - k > kTileSide, wide, left, right, depth, space.scores + k * kTileBlock,
                  kTileBlock);
    }
    __m512 inverse[2];
    for (int64_t half = 0; half <= int64_t(wide); ++half) {
      inverse[half] =
          exponentials(space.scores + half * kTileSide, keys, space.p + half * kTileSize);
    }
    const Operand p{space.p, 64, 2 * kTileSize, 2 * kPanelTile};
    for (int64_t i = 0; i < size; i += kTileBlock) {
      const Operand values{head.values + i * head.value_stride + key, size_t(head.value_stride) * 2,
                           2 * kTileSide * head.value_stride, 2 * kTileDepth};
      small_block(true, wide, values, p, tiles, space.sums + i * kTileBlock, kTileBlock);
    }
    for (int64_t half = 0; half <= int64_t(wide); ++half) {
      store_context(space.sums + half * kTileSide, inverse[half],
                    std::min(kTileSide, count - half * kTileSide), size,
                    context + (first + half * kTileSide) * stride, stride);
    }
  }
}

// Rows [begin, begin + count) of x as operands.
void pack_rows(Tensor x, int64_t begin, int64_t count, uint16_t* right, uint16_t* left) {
  Packed packed{begin, count, 0, x.cols / kTileDepth, right};
  for (int64_t g = 0; g < packed.groups(); ++g) pack_group_along<true>(x, packed, g, panel_tile);
  if (left == nullptr) return;
  packed.data = left;
  for (int64_t g = 0; g < packed.groups(); ++g) pack_group_along<false>(x, packed, g, left_tile);
}

// The operands and scratch space of a group with this number of tokens and queries.
struct Task {
  int64_t tokens, queries;  // padded to blocks
  uint16_t *left, *right, *first;
  float* strip;
  Head head;
  Space space;
  int64_t floats;  // in total

  Task(int64_t tokens_, int64_t queries_, int64_t longest, int64_t hidden, int64_t size, bool apart,
       float* memory)
      : tokens(round_up(tokens_, kTileBlock)), queries(round_up(queries_, kTileBlock)) {
    Pieces pieces{memory};
    right = pieces.take<uint16_t>(tokens * hidden);
    left = pieces.take<uint16_t>(tokens * hidden);
    first = apart ? pieces.take<uint16_t>(queries * hidden) : right;
    strip = pieces.take<float>(std::max(tokens, queries) * kTileBlock);
    // Tiles may extend beyond the last sequence.
    head.query_stride = queries + kTileBlock;
    head.queries = pieces.take<uint32_t>(size / 2 * head.query_stride);
    head.keys = pieces.take<uint16_t>((tokens + kTileBlock) * size);
    head.value_stride = tokens + kTileBlock;
    head.values = pieces.take<uint16_t>(size * head.value_stride);
    const int64_t most = round_up(longest, kTileBlock);
    space.scores = pieces.take<float>(most * kTileBlock);
    space.p = pieces.take<uint16_t>(most * kTileBlock);
    space.sums = pieces.take<float>(size * kTileBlock);
    floats = pieces.floats;
  }
};

// Projects the queries, keys and values of head `h`, whose biases are at `bias` (and `hidden`
// further on).
void project(const Weights& weights, int64_t h, const float* bias, int64_t hidden, float factor,
             const Task& task) {
  const Head& head = task.head;
  const int64_t tiles = weights.tiles, size = weights.blocks * kTileBlock;
  for (int64_t b = 0; b < weights.blocks; ++b) {
    multiply_lines(weights.at(h, Weights::query) + b * weights.unit(), task.first, tiles,
                   task.queries, task.strip);
    store_queries(task.strip, bias + b * kTileBlock, factor, task.queries,
                  head.queries + b * kTileSide * head.query_stride, head.query_stride);
  }
  for (int64_t b = 0; b < weights.blocks; ++b) {
    multiply_lines(weights.at(h, Weights::value) + b * weights.unit(), task.right, tiles,
                   task.tokens, task.strip);
    store_values(task.strip, bias + 2 * hidden + b * kTileBlock, task.tokens,
                 head.values + b * kTileBlock * head.value_stride, head.value_stride);
  }
  for (int64_t b = 0; b < weights.blocks; ++b) {
    multiply_panel(task.left, tiles, task.tokens, weights.at(h, Weights::key) + b * weights.unit(),
                   tiles, task.strip, kTileBlock, false);
    store_keys(task.strip, bias + hidden + b * kTileBlock, task.tokens, head.keys + b * kTileBlock,
               size);
  }
}

}  // namespace

void tile_self_attention(const AttentionShape& shape, Tensor x, Tensor first, Tensor weight,
                         Tensor bias, Tensor context) {
  const int64_t hidden = x.cols, size = shape.head_size, tiles = hidden / kTileDepth;
  const int32_t* key_rows = shape.keys.offsets;
  const int32_t* query_rows = shape.queries.offsets;
  Weights weights{shape.heads, size / kTileBlock, tiles, nullptr};
  const int64_t group_floats = int64_t(sizeof(Group) / sizeof(float)) * shape.keys.count;
  float* memory = scratch(Scratch::operation, weights.floats() + group_floats);
  weights.data = reinterpret_cast<uint16_t*>(memory);
  pack(weight, weights);
  Group* const groups = reinterpret_cast<Group*>(memory + weights.floats());
  const int64_t total = x.rows;
  const int64_t most = std::max(kTileBlock, kCacheBytes / (4 * hidden + 6 * size + 4 * kTileBlock));
  const int64_t wanted = round_up((total + most - 1) / most, threads());
  const int64_t count = make_groups(shape.keys, (total + wanted - 1) / wanted, groups);
  // With few groups, each head becomes a task of its own.
  const int64_t parts = std::min(shape.heads, (threads() + count - 1) / count);
  // Converts scores to base 2.
  const float factor = shape.scale * kLog2e;

  for_tasks(count * parts, [&](int64_t i) {
    const Group& group = groups[i / parts];
    const int64_t key = key_rows[group.first], tokens = key_rows[group.end] - key;
    const int64_t query = query_rows[group.first], queries = query_rows[group.end] - query;
    const auto lay_out = [&](float* at) {
      return Task(tokens, queries, shape.keys.max_length, hidden, size, bool(first), at);
    };
    const Task task = lay_out(scratch(Scratch::task, lay_out(nullptr).floats));
    pack_rows(x, key, tokens, task.right, task.left);
    if (first) pack_rows(first, query, queries, task.first, nullptr);
    // Clears the values behind the last token: a NaN there, times probability 0, would be a NaN.
    for (int64_t r = 0; r < size; ++r) {
      std::memset(task.head.values + r * task.head.value_stride + task.tokens, 0,
                  kTileBlock * sizeof(uint16_t));
    }
    const Tiles config;
    const int64_t end = shape.heads * (i % parts + 1) / parts;
    for (int64_t h = shape.heads * (i % parts) / parts; h < end; ++h) {
      project(weights, h, bias.f32() + h * size, hidden, factor, task);
      for (int64_t s = group.first; s < group.end; ++s) {
        uint16_t* to =
            static_cast<uint16_t*>(context.data) + query_rows[s] * context.stride + h * size;
        attend(task.head, size, key_rows[s] - key, key_rows[s + 1] - key_rows[s],
               query_rows[s] - query, query_rows[s + 1] - query_rows[s], task.space, to,
               context.stride);
      }
    }
  });
}

}  // namespace finetune::cpu
