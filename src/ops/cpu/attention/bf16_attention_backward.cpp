// Attention's backward pass on bf16 tiles.
#include <algorithm>

#include "ops/cpu/attention/attention.h"
#include "ops/cpu/attention/bf16_attention.h"
#include "ops/cpu/attention/bf16_heads.h"

namespace finetune::cpu {
namespace {

// Queries per block: sums over queries are loaded and stored once per block.
constexpr int64_t kQueries = 128;

// With m = P * mask and ds = scale * (m * dm - P * D), dm = dout V^T, D = sum(m * dm) over a
// query's keys: dv = m^T dout, dk = ds^T q, dq = ds k. The first two are formed transposed.
struct Space {
  // The keys, packed once: for scores, for dm and for dq.
  uint16_t *keys, *values, *deep_keys;
  // A block of queries: rows for scores and dm, transposed for dk and dv.
  uint16_t *queries, *gradients, *turned_queries, *turned_gradients;
  // m and ds as right operands with depth over queries; ds as left operand
  uint16_t *m, *ds, *ds_rows;
  float *p, *dm;   // (block, keys)
  float *dk, *dv;  // (size, keys)
  float* dq;       // (block, size)
  float* mask;
  int64_t floats;

  // `seen`: the most keys of a block of queries; `factors`: the number of dropout factors.
  Space(int64_t keys_, int64_t seen, int64_t block, int64_t size, int64_t factors, float* memory) {
    const int64_t padded = round_up(keys_, kTileDepth), wide = round_up(seen, kTileDepth);
    Pieces pieces{memory};
    for (uint16_t** each : {&keys, &values, &deep_keys})
      *each = pieces.take<uint16_t>(padded * size);
    for (uint16_t** each : {&queries, &gradients, &turned_queries, &turned_gradients}) {
      *each = pieces.take<uint16_t>(block * size);
    }
    for (uint16_t** each : {&m, &ds, &ds_rows}) *each = pieces.take<uint16_t>(block * wide);
    for (float** each : {&p, &dm}) *each = pieces.take<float>(block * wide);
    for (float** each : {&dk, &dv}) *each = pieces.take<float>(size * padded);
    dq = pieces.take<float>(block * size);
    mask = pieces.take<float>(factors);
    floats = pieces.floats;
  }
};

// p = 2^(p * factor - lse) over a query's keys, zero beyond them; returns D.
float probabilities(float* p, const float* dm, int64_t keys, int64_t padded, float factor,
                    float lse, const float* mask) {
  const __m512 scale = _mm512_set1_ps(factor), log_sum = _mm512_set1_ps(lse * kLog2e);
  __m512 sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < padded; i += 16) {
    const __mmask16 live = lane_mask(keys - i);
    const __m512 s = _mm512_maskz_load_ps(live, p + i);
    const __m512 e = _mm512_maskz_mov_ps(live, exp2_of(_mm512_fmsub_ps(s, scale, log_sum)));
    _mm512_store_ps(p + i, e);
    const __m512 m = mask ? _mm512_mul_ps(e, _mm512_maskz_loadu_ps(live, mask + i)) : e;
    sum = _mm512_add_ps(sum, _mm512_mul_ps(m, _mm512_maskz_load_ps(live, dm + i)));
  }
  return _mm512_reduce_add_ps(sum);
}

struct ScoreRow {
  const float* p;
  const float* dm;
  const float* mask;  // null: ones
  float weighted;     // D
};

struct Gradients {
  __m512 m, ds;
};

// The gradients of 16 keys from `i` on; zeros for a null row.
Gradients gradients_of(const ScoreRow& row, int64_t i, int64_t keys, float scale) {
  if (row.p == nullptr) return {_mm512_setzero_ps(), _mm512_setzero_ps()};
  const __mmask16 live = lane_mask(keys - i);
  const __m512 p = _mm512_load_ps(row.p + i);
  const __m512 m = row.mask ? _mm512_mul_ps(p, _mm512_maskz_loadu_ps(live, row.mask + i)) : p;
  const __m512 pd = _mm512_mul_ps(p, _mm512_set1_ps(row.weighted));
  const __m512 ds = _mm512_fmsub_ps(m, _mm512_maskz_load_ps(live, row.dm + i), pd);
  return {m, _mm512_mul_ps(ds, _mm512_set1_ps(scale))};
}

// Stores the gradients of queries `r` and r + 1 of a block into the three operands.
void store_gradients(const ScoreRow& even, const ScoreRow& odd, int64_t r, int64_t keys,
                     int64_t padded, float scale, const Space& space) {
  const int64_t deep = r / kTileDepth * padded * kTileDepth + r % kTileDepth * kTileSide;
  uint16_t* rows = space.ds_rows + r / kTileSide * padded * kTileSide + r % kTileSide * kTileDepth;
  for (int64_t i = 0; i < padded; i += kTileDepth, rows += kTileSize) {
    Gradients a[2], b[2];
    for (int64_t k = 0; k < 2; ++k) {
      const int64_t at = i + 16 * k;
      a[k] = gradients_of(even, at, keys, scale);
      b[k] = gradients_of(odd, at, keys, scale);
      const int64_t tile = deep + at / kTileSide * kTileSize;
      _mm512_store_si512(space.m + tile, bf16_pairs(a[k].m, b[k].m));
      _mm512_store_si512(space.ds + tile, bf16_pairs(a[k].ds, b[k].ds));
    }
    _mm512_store_si512(rows, round_to_bf16(a[0].ds, a[1].ds));
    _mm512_store_si512(rows + kTileDepth, round_to_bf16(b[0].ds, b[1].ds));
  }
}

// Adds a query's gradients of the scores to `sums`.
void add_gradients(const ScoreRow& row, int64_t keys, float* sums) {
  for (int64_t i = 0; i < keys; i += kTileSide) {
    const __mmask16 live = lane_mask(keys - i);
    const __m512 sum = _mm512_maskz_loadu_ps(live, sums + i);
    _mm512_mask_storeu_ps(sums + i, live, _mm512_add_ps(sum, gradients_of(row, i, keys, 1).ds));
  }
}

void attend_backward(const AttentionShape& shape, const Dropout& dropout, DropoutRange range,
                     const HeadTask& task, Tensor q, Tensor k, Tensor v, Tensor lse, Tensor dout,
                     Tensor dq, Tensor dk, Tensor dv) {
  const int64_t size = shape.head_size, keys = task.keys, padded = round_up(keys, kTileDepth);
  const int64_t block = std::min(kQueries, round_up(task.queries, kTileDepth));
  const bool windowed = shape.window >= 0;
  const int64_t most = SeenKeys::most(shape, block, keys);
  // Dropout factors of a block, or with a window of two queries.
  const int64_t of_query = most + kFactorsSlack;
  const int64_t drawn = windowed ? 2 * of_query : block * keys + kFactorsSlack;
  const int64_t factors = dropout.on() ? drawn : 0;
  const auto lay_out = [&](float* at) { return Space(keys, most, block, size, factors, at); };
  const Space space = lay_out(scratch(Scratch::task, lay_out(nullptr).floats));
  const PositionBias& bias = shape.bias;
  if (bias.gradient && !bias.of_pairs())
    std::fill_n(bias.gradients(task.head, task.first_key), 2 * keys - 1, 0.0f);
  const TaskHead head{task, size};
  const HeadRows key_rows = head.keys(k), value_rows = head.keys(v);
  for (const HeadRows& x : {head.queries(q), key_rows, value_rows, head.queries(dout)})
    head.fetch(x);
  pack_rows_right(key_rows, round_up(keys, kTileSide), size, space.keys);
  pack_rows_deep(key_rows, padded, size, space.deep_keys);
  pack_rows_right(value_rows, round_up(keys, kTileSide), size, space.values);
  if (windowed) {  // a block does not see all keys
    std::fill_n(space.dk, size * padded, 0.0f);
    std::fill_n(space.dv, size * padded, 0.0f);
  }
  const float factor = shape.scale * kLog2e;
  const Tiles config;
  for (int64_t first = 0; first < task.queries; first += block) {
    const int64_t count = std::min(block, task.queries - first);
    const int64_t deep = round_up(count, kTileDepth);  // padded with empty queries
    const int64_t row = task.first_query + first;
    const HeadRows query_rows = head.rows(q, row, count),
                   gradient_rows = head.rows(dout, row, count);
    pack_rows_left(query_rows, round_up(count, kTileSide), size, space.queries);
    pack_rows_left(gradient_rows, round_up(count, kTileSide), size, space.gradients);
    pack_rows_turned(query_rows, deep, size, space.turned_queries);
    pack_rows_turned(gradient_rows, deep, size, space.turned_gradients);
    const SeenKeys seen(shape, first, count, keys);
    const int64_t end = seen.begin + seen.count, across = round_up(seen.count, kTileDepth);
    const auto dropped = [&](int64_t begin, int64_t number, float* to) {
      return range(dropout, shape.head_name(task.head), shape.samples[task.sequence], begin, number,
                   to);
    };
    const float* mask =
        dropout.on() && !windowed ? dropped(first * keys, count * keys, space.mask) : nullptr;
    for (int64_t r = 0; r < count; r += kTileBlock) {
      const bool tall = count - r > kTileSide;
      for (int64_t i = seen.begin; i < end; i += kTileBlock) {
        const bool wide = keys - i > kTileSide;
        const int64_t at = r * across + i - seen.begin;
        small_block(tall, wide, lines_of(space.queries, size, r), lines_of(space.keys, size, i),
                    size / kTileDepth, space.p + at, across);
        small_block(tall, wide, lines_of(space.gradients, size, r), lines_of(space.values, size, i),
                    size / kTileDepth, space.dm + at, across);
      }
    }
    for (int64_t r = 0; r < deep; r += 2) {
      ScoreRow pair[2] = {};
      for (int64_t i = r; i < std::min(r + 2, count); ++i) {
        const QueryKeys own(shape, seen, first + i, keys);
        float* p = space.p + i * across;
        const float* dm = space.dm + i * across;
        if (bias.on()) {
          add_times(bias.row(task.head, task.first_query, first + i) + seen.begin, 1 / shape.scale,
                    p, seen.count);
        }
        const float* kept = mask ? mask + i * keys : nullptr;
        if (dropout.on() && windowed) {
          kept =
              dropped((first + i) * keys + seen.begin, seen.count, space.mask + (i - r) * of_query);
        }
        std::fill_n(p, own.begin, kUnseen);
        const float log_sum = lse.f32()[task.head * lse.stride + row + i];
        pair[i - r] = {p, dm, kept, probabilities(p, dm, own.end, across, factor, log_sum, kept)};
        if (bias.gradient && bias.of_pairs()) {
          float* const to = bias.gradient + bias.pair_row(task.head, row + i);
          std::fill_n(to, seen.count, 0.0f);
          add_gradients(pair[i - r], seen.count, to);
        } else if (bias.gradient) {
          add_gradients(pair[i - r], seen.count,
                        bias.gradient_row(task.head, task.first_key, keys, first + i) + seen.begin);
        }
      }
      store_gradients(pair[0], pair[1], r, seen.count, across, shape.scale, space);
    }
    for (int64_t d = 0; d < size; d += kTileBlock) {
      for (int64_t i = seen.begin; i < end; i += kTileBlock) {
        const bool wide = keys - i > kTileSide, add = windowed || first > 0;
        const int64_t at = d * padded + i;
        small_block(true, wide, deep_of(space.turned_gradients, size, d),
                    deep_of(space.m, across, i - seen.begin), deep / kTileDepth, space.dv + at,
                    padded, add);
        small_block(true, wide, deep_of(space.turned_queries, size, d),
                    deep_of(space.ds, across, i - seen.begin), deep / kTileDepth, space.dk + at,
                    padded, add);
      }
    }
    for (int64_t r = 0; r < count; r += kTileBlock) {
      for (int64_t d = 0; d < size; d += kTileBlock) {
        small_block(count - r > kTileSide, true, lines_of(space.ds_rows, across, r),
                    deep_of(space.deep_keys + seen.begin * size, size, d), across / kTileDepth,
                    space.dq + r * size + d, size);
      }
    }
    for (int64_t r = 0; r < count; ++r) {
      bfloat16* to = task.at<bfloat16>(dq, row + r, size);
      for (int64_t i = 0; i < size; i += kTileDepth) {
        const float* from = space.dq + r * size + i;
        _mm512_storeu_si512(to + i, round_to_bf16(_mm512_load_ps(from), _mm512_load_ps(from + 16)));
      }
    }
  }
  store_turned(space.dk, padded, keys, size, task.at<bfloat16>(dk, task.first_key, size),
               dk.stride);
  store_turned(space.dv, padded, keys, size, task.at<bfloat16>(dv, task.first_key, size),
               dv.stride);
}

}  // namespace

void bf16_attention_backward(const AttentionShape& shape, const Dropout& dropout,
                             DropoutRange range, Tensor q, Tensor k, Tensor v, Tensor lse,
                             Tensor dout, Tensor dq, Tensor dk, Tensor dv) {
  for_heads(shape, [&](const HeadTask& task) {
    attend_backward(shape, dropout, range, task, q, k, v, lse, dout, dq, dk, dv);
  });
}

}  // namespace finetune::cpu
