// Attention's forward pass on bf16 tiles.
#include "ops/cpu/attention/bf16_attention.h"

#include <algorithm>
#include <cmath>

#include "ops/cpu/attention/attention.h"
#include "ops/cpu/attention/bf16_heads.h"

namespace finetune::cpu {
namespace {

constexpr int64_t kQueries = kTileBlock;  // processed at a time

struct Space {
  uint16_t *queries, *keys, *values, *p;
  float *scores, *sums, *mask;
  int64_t floats;

  // `seen`: the most keys of a block of queries; `factors`: the number of dropout factors.
  Space(int64_t keys_, int64_t seen, int64_t size, int64_t factors, float* memory) {
    const int64_t padded = round_up(keys_, kTileDepth), wide = round_up(seen, kTileDepth);
    Pieces pieces{memory};
    queries = pieces.take<uint16_t>(kQueries * size);
    keys = pieces.take<uint16_t>(padded * size);
    values = pieces.take<uint16_t>(padded * size);
    p = pieces.take<uint16_t>(kQueries * wide);
    scores = pieces.take<float>(kQueries * wide);
    sums = pieces.take<float>(kQueries * size);
    mask = pieces.take<float>(factors);
    floats = pieces.floats;
  }
};

struct RowSum {
  float largest;  // of the scores, in base 2
  float sum;
};

// Writes a row of p in tiles of 32 keys: 2^(scores * factor - largest) times the dropout factors if
// given; the sum is without them. Zeros follow the first `keys` of `all`. The maximum ignores NaN
// but the sum does not.
RowSum exponentials(const float* scores, int64_t keys, int64_t all, float factor, const float* mask,
                    uint16_t* p) {
  const __m512 scale = _mm512_set1_ps(factor), nothing = _mm512_set1_ps(-INFINITY);
  __m512 most = nothing;
  for (int64_t i = 0; i < keys; i += 16) {
    const __m512 s = _mm512_mul_ps(_mm512_load_ps(scores + i), scale);
    most = _mm512_mask_max_ps(most, lane_mask(keys - i), s, most);
  }
  const float largest = _mm512_reduce_max_ps(most);
  const __m512 top = _mm512_set1_ps(largest);
  __m512 sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < all; i += kTileDepth) {
    __m512 half[2];
    for (int64_t k = 0; k < 2; ++k) {
      const int64_t at = i + 16 * k;
      const __mmask16 live = lane_mask(keys - at);
      const __m512 s = _mm512_maskz_load_ps(live, scores + at);
      __m512 e = _mm512_maskz_mov_ps(live, exp2_of(_mm512_fmsub_ps(s, scale, top)));
      sum = _mm512_add_ps(sum, e);
      if (mask != nullptr) e = _mm512_mul_ps(e, _mm512_maskz_loadu_ps(live, mask + at));
      half[k] = e;
    }
    _mm512_store_si512(p + i / kTileDepth * kTileSize, round_to_bf16(half[0], half[1]));
  }
  return {largest, _mm512_reduce_add_ps(sum)};
}

void attend(const AttentionShape& shape, const Dropout& dropout, DropoutRange range,
            const HeadTask& task, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse) {
  const int64_t size = shape.head_size, keys = task.keys, padded = round_up(keys, kTileDepth);
  const bool windowed = shape.window >= 0;
  const int64_t most = SeenKeys::most(shape, kQueries, keys);
  const int64_t drawn = windowed ? most : kQueries * keys;  // dropout factors at once
  const int64_t factors = dropout.on() ? drawn + kFactorsSlack : 0;
  const auto lay_out = [&](float* at) { return Space(keys, most, size, factors, at); };
  const Space space = lay_out(scratch(Scratch::task, lay_out(nullptr).floats));
  const TaskHead head{task, size};
  const HeadRows key_rows = head.keys(k), value_rows = head.keys(v);
  for (const HeadRows& x : {head.queries(q), key_rows, value_rows}) head.fetch(x);
  pack_rows_right(key_rows, round_up(keys, kTileSide), size, space.keys);
  pack_rows_deep(value_rows, padded, size, space.values);
  if (task.queries <= kQueries) fetch_to_write(head.queries(out), size);
  const float factor = shape.scale * kLog2e;
  const Tiles config;
  for (int64_t first = 0; first < task.queries; first += kQueries) {
    const int64_t count = std::min(kQueries, task.queries - first);
    const int64_t row = task.first_query + first;
    const bool tall = count > kTileSide;
    pack_rows_left(head.rows(q, row, count), tall ? kTileBlock : kTileSide, size, space.queries);
    const SeenKeys seen(shape, first, count, keys);
    const int64_t end = seen.begin + seen.count, wide = round_up(seen.count, kTileDepth);
    const auto dropped = [&](int64_t begin, int64_t number) {
      return range(dropout, shape.head_name(task.head), shape.samples[task.sequence], begin, number,
                   space.mask);
    };
    const float* mask = dropout.on() && !windowed ? dropped(first * keys, count * keys) : nullptr;
    const Operand left = lines_of(space.queries, size, 0);
    for (int64_t i = seen.begin; i < end; i += kTileBlock) {
      small_block(tall, keys - i > kTileSide, left, lines_of(space.keys, size, i),
                  size / kTileDepth, space.scores + (i - seen.begin), wide);
    }
    float inverse[kQueries];
    for (int64_t i = 0; i < count; ++i) {
      const QueryKeys own(shape, seen, first + i, keys);
      uint16_t* p = space.p + i / kTileSide * wide * kTileSide + i % kTileSide * kTileDepth;
      float* const scores = space.scores + i * wide;
      if (shape.bias.on()) {
        add_times(shape.bias.row(task.head, task.first_query, first + i) + seen.begin,
                  1 / shape.scale, scores, seen.count);
      }
      std::fill_n(scores, own.begin, kUnseen);
      const float* kept = mask ? mask + i * keys : nullptr;
      if (dropout.on() && windowed) kept = dropped((first + i) * keys + seen.begin, seen.count);
      const RowSum s = exponentials(scores, own.end, seen.count, factor, kept, p);
      inverse[i] = 1.0f / s.sum;
      if (lse) {
        lse.f32()[task.head * lse.stride + row + i] = s.largest / kLog2e + std::log(s.sum);
      }
    }
    for (int64_t i = 0; i < size; i += kTileBlock) {
      small_block(tall, true, lines_of(space.p, wide, 0),
                  deep_of(space.values + seen.begin * size, size, i), wide / kTileDepth,
                  space.sums + i, size);
    }
    for (int64_t r = 0; r < count; ++r) {
      const __m512 scale = _mm512_set1_ps(inverse[r]);
      bfloat16* to = task.at<bfloat16>(out, row + r, size);
      for (int64_t i = 0; i < size; i += kTileDepth) {
        const float* from = space.sums + r * size + i;
        const __m512 low = _mm512_mul_ps(_mm512_load_ps(from), scale);
        const __m512 high = _mm512_mul_ps(_mm512_load_ps(from + 16), scale);
        _mm512_storeu_si512(to + i, round_to_bf16(low, high));
      }
    }
  }
}

}  // namespace

bool has_bf16_attention(int64_t head_size) {
  return head_size % kTileBlock == 0;
}

void bf16_attention(const AttentionShape& shape, const Dropout& dropout, DropoutRange range,
                    Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse) {
  for_heads(shape,
            [&](const HeadTask& task) { attend(shape, dropout, range, task, q, k, v, out, lse); });
}

}  // namespace finetune::cpu
