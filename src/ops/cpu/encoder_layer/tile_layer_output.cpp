// Second half of an encoder layer in inference: attention output and feed-forward.
#include <algorithm>

#include "ops/cpu/bf16_tiles/bf16_math.h"
#include "ops/cpu/bf16_tiles/tile_panels.h"
#include "ops/cpu/bf16_tiles/tile_stream.h"
#include "ops/cpu/encoder_layer/tile_layer.h"
#include "ops/cpu/tasks.h"

namespace finetune::cpu {
namespace {

// The packed weights in the order of their use: the attention's output, then for each chunk of the
// inner layer its part of the inner weight and of the output weight. A panel is 32 lines (columns
// of the result).
struct Weights {
  int64_t hidden, inner;  // in tiles of depth; also the number of panels
  uint16_t* data;

  int64_t chunks() const { return (inner + kPartTiles - 1) / kPartTiles; }
  int64_t chunk_tiles(int64_t chunk) const {
    return std::min(kPartTiles, inner - chunk * kPartTiles);
  }
  int64_t floats() const { return (hidden + 2 * inner) * hidden * kTileSize; }
  uint16_t* attention(int64_t panel) const { return data + panel * hidden * kPanelTile; }
  uint16_t* of_chunk(int64_t chunk) const {
    return attention(hidden) + 2 * chunk * kPartTiles * hidden * kPanelTile;
  }
  uint16_t* inner_panel(int64_t panel) const {
    const int64_t chunk = panel / kPartTiles;
    return of_chunk(chunk) + panel % kPartTiles * hidden * kPanelTile;
  }
  uint16_t* output_panel(int64_t chunk, int64_t panel) const {
    const int64_t tiles = chunk_tiles(chunk);
    return of_chunk(chunk) + (tiles * hidden + panel * tiles) * kPanelTile;
  }
};

void pack(const LayerOutput& layer, const Weights& to) {
  const int64_t per_hidden = 2 * to.hidden, per_inner = 2 * to.inner;  // groups of 16 lines
  const auto half = [](int64_t group) { return group % 2 * kTileSize; };
  for_tasks(2 * per_hidden + per_inner, [&](int64_t i) {
    if (i < per_hidden) {
      pack_group_along<true>(layer.attention_weight,
                             {0, layer.hidden(), 0, to.hidden, to.attention(0)}, i, panel_tile);
    } else if (i < 2 * per_hidden) {
      pack_group_along<true>(layer.output_weight, {0, layer.hidden(), 0, to.inner, nullptr},
                             i - per_hidden, [&](const Packed&, int64_t group, int64_t d) {
                               return to.output_panel(d / kPartTiles, group / 2) +
                                      d % kPartTiles * kPanelTile + half(group);
                             });
    } else {
      pack_group_along<true>(layer.inner_weight, {0, layer.inner(), 0, to.hidden, nullptr},
                             i - 2 * per_hidden, [&](const Packed&, int64_t group, int64_t d) {
                               return to.inner_panel(group / 2) + d * kPanelTile + half(group);
                             });
    }
  });
}

// The intermediate values of some rows. `sums` (rows, hidden) is fp32; left operands are `state`
// (rows, hidden) and `inner` (rows, one chunk).
struct Rows {
  int64_t count, padded;
  float* sums;
  uint16_t* state;
  uint16_t* inner;
  float* strip;  // (rows, 32)
};

int64_t bytes_of_row(const LayerOutput& layer) {
  return 6 * layer.hidden() + 2 * kPartTiles * kTileDepth + 4 * kTileBlock;
}

uint16_t* left_row(uint16_t* operand, int64_t tiles, int64_t r) {
  return operand + r / kTileSide * tiles * kTileSize + r % kTileSide * kTileDepth;
}

void take_context(Tensor context, int64_t begin, const Rows& rows) {
  const int64_t tiles = context.cols / kTileDepth;
  for (int64_t r = 0; r < rows.count; ++r) {
    const uint16_t* from =
        static_cast<const uint16_t*>(context.data) + (begin + r) * context.stride;
    uint16_t* to = left_row(rows.state, tiles, r);
    for (int64_t d = 0; d < tiles; ++d) {
      _mm512_store_si512(to + d * kTileSize, _mm512_loadu_si512(from + d * kTileDepth));
    }
  }
}

struct Norm {
  const float* gamma;
  const float* beta;
  float epsilon;
};

// x += bias + residual in place (either may be null), then body(i, LN(x)[i ... i+16)). Each is
// (cols).
template <typename Body>
void normalise(float* x, const float* bias, const float* residual, int64_t cols, const Norm& norm,
               const Body& body) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < cols; i += 16) {
    __m512 v = _mm512_load_ps(x + i);
    if (bias != nullptr) v = _mm512_add_ps(v, _mm512_loadu_ps(bias + i));
    if (residual != nullptr) v = _mm512_add_ps(v, _mm512_loadu_ps(residual + i));
    _mm512_store_ps(x + i, v);
    sum = _mm512_add_ps(sum, v);
  }
  const __m512 mean = _mm512_set1_ps(_mm512_reduce_add_ps(sum) / float(cols));
  __m512 squares = _mm512_setzero_ps();
  for (int64_t i = 0; i < cols; i += 16) {
    const __m512 v = _mm512_sub_ps(_mm512_load_ps(x + i), mean);
    squares = _mm512_fmadd_ps(v, v, squares);
  }
  const float variance = _mm512_reduce_add_ps(squares) / float(cols);
  const __m512 scale = _mm512_set1_ps(1.0f / __builtin_sqrtf(variance + norm.epsilon));
  for (int64_t i = 0; i < cols; i += 16) {
    const __m512 v = _mm512_mul_ps(_mm512_sub_ps(_mm512_load_ps(x + i), mean), scale);
    body(i, _mm512_fmadd_ps(v, _mm512_loadu_ps(norm.gamma + i), _mm512_loadu_ps(norm.beta + i)));
  }
}

// Turns the attention output into the feed-forward's input: as left operand in `state`, and with
// the output bias in `sums`, to which the products are added.
void finish_attention(const LayerOutput& layer, Tensor residual, int64_t begin, const Rows& rows) {
  const int64_t cols = layer.hidden(), tiles = cols / kTileDepth;
  const Norm norm{layer.attention_gamma.f32(), layer.attention_beta.f32(), layer.epsilon};
  for (int64_t r = 0; r < rows.count; ++r) {
    float* sums = rows.sums + r * cols;
    uint16_t* to = left_row(rows.state, tiles, r);
    normalise(sums, layer.attention_bias.f32(), residual.f32() + (begin + r) * residual.stride,
              cols, norm, [&](int64_t i, __m512 v) {
                _mm256_store_si256(
                    reinterpret_cast<__m256i*>(to + i / kTileDepth * kTileSize + i % kTileDepth),
                    (__m256i)_mm512_cvtneps_pbh(v));
                _mm512_store_ps(sums + i,
                                _mm512_add_ps(v, _mm512_loadu_ps(layer.output_bias.f32() + i)));
              });
  }
}

// Tile `d` of inner = f(strip + bias), rounded.
template <Activation kKind>
void activate_strip(const Rows& rows, const float* bias, int64_t tiles, int64_t d) {
  const __m512 low = _mm512_loadu_ps(bias), high = _mm512_loadu_ps(bias + 16);
  for (int64_t r = 0; r < rows.count; ++r) {
    const float* from = rows.strip + r * kTileBlock;
    const __m512 left = activated<kKind>(_mm512_add_ps(_mm512_load_ps(from), low));
    const __m512 right = activated<kKind>(_mm512_add_ps(_mm512_load_ps(from + 16), high));
    _mm512_store_si512(left_row(rows.inner, tiles, r) + d * kTileSize, round_to_bf16(left, right));
  }
}

template <Activation kKind>
void feed_forward(const LayerOutput& layer, const Weights& weights, const Rows& rows) {
  const int64_t hidden = weights.hidden;
  for (int64_t chunk = 0; chunk < weights.chunks(); ++chunk) {
    const int64_t tiles = weights.chunk_tiles(chunk);
    for (int64_t d = 0; d < tiles; ++d) {
      const int64_t panel = chunk * kPartTiles + d;
      multiply_panel(rows.state, hidden, rows.count, weights.inner_panel(panel), hidden, rows.strip,
                     kTileBlock, false);
      activate_strip<kKind>(rows, layer.inner_bias.f32() + panel * kTileBlock, tiles, d);
    }
    for (int64_t panel = 0; panel < hidden; ++panel) {
      multiply_panel(rows.inner, tiles, rows.count, weights.output_panel(chunk, panel), tiles,
                     rows.sums + panel * kTileBlock, layer.hidden(), true);
    }
  }
}

void feed_forward(const LayerOutput& layer, const Weights& weights, const Rows& rows) {
  with_activation(layer.activation, [&](auto kind) { feed_forward<kind()>(layer, weights, rows); });
}

}  // namespace

bool has_tile_layer(const LayerShape& shape) {
  return shape.hidden % kTileBlock == 0 && shape.head_size % kTileBlock == 0 &&
         shape.inner % kTileBlock == 0 && has_bf16_activation(shape.activation);
}

void tile_layer_output(const LayerOutput& layer, Tensor context, Tensor residual, Tensor y) {
  const int64_t cols = layer.hidden(), total = y.rows;
  Weights weights{cols / kTileDepth, layer.inner() / kTileDepth, nullptr};
  weights.data = reinterpret_cast<uint16_t*>(scratch(Scratch::operation, weights.floats()));
  pack(layer, weights);
  const int64_t most =
      std::max(kTileBlock, kCacheBytes / bytes_of_row(layer) / kTileBlock * kTileBlock);
  const int64_t tasks = round_up((total + most - 1) / most, threads());
  const int64_t per_task = round_up((total + tasks - 1) / tasks, kTileBlock);
  for_tasks((total + per_task - 1) / per_task, [&](int64_t task) {
    const int64_t begin = task * per_task;
    Rows rows{std::min(per_task, total - begin), 0, nullptr, nullptr, nullptr, nullptr};
    rows.padded = round_up(rows.count, kTileBlock);
    rows.sums = scratch(Scratch::task, rows.padded * bytes_of_row(layer) / int64_t(sizeof(float)));
    rows.strip = rows.sums + rows.padded * cols;
    rows.state = reinterpret_cast<uint16_t*>(rows.strip + rows.padded * kTileBlock);
    rows.inner = rows.state + rows.padded * cols;
    const Tiles config;
    take_context(context, begin, rows);
    for (int64_t panel = 0; panel < weights.hidden; ++panel) {
      multiply_panel(rows.state, weights.hidden, rows.count, weights.attention(panel),
                     weights.hidden, rows.sums + panel * kTileBlock, cols, false);
    }
    finish_attention(layer, residual, begin, rows);
    feed_forward(layer, weights, rows);
    const Norm norm{layer.output_gamma.f32(), layer.output_beta.f32(), layer.epsilon};
    for (int64_t r = 0; r < rows.count; ++r) {
      float* to = y.f32() + (begin + r) * y.stride;
      normalise(rows.sums + r * cols, nullptr, nullptr, cols, norm,
                [&](int64_t i, __m512 v) { _mm512_storeu_ps(to + i, v); });
    }
  });
}

}  // namespace finetune::cpu
