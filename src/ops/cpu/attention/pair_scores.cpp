// Scores by relative position, and their gradients: products of a head's queries (or keys) with the
// table's rows, from which each pair takes one element.
#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/attention/pair_scores.cpp"
#include <algorithm>

#include "hwy/foreach_target.h"
#include "ops/backend.h"
#include "ops/cpu/attention/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {
namespace {

// Queries (or keys) [first, first + count) of a sequence, and the table's rows [row, row + width)
// of their pairs with all keys (or queries). The product of both has `width` columns.
struct Band {
  int64_t first, count;
  int64_t row, width;
  bool consecutive;  // each distance has a row
};

// `aligned`: the band begins and ends at whole vectors.
Band band_of(const RelativeRows& rows, const cpu::HeadTask& task, bool of_queries, int64_t first,
             bool aligned) {
  const int64_t all = of_queries ? task.queries : task.keys;
  const int64_t count = HWY_MIN(cpu::kQueryBlock, all - first), last = first + count - 1;
  const int64_t least = of_queries ? first - (task.keys - 1) : -last;
  const int64_t most = of_queries ? last : task.queries - 1 - first;
  int64_t row = rows.of(least), end = rows.of(most) + 1;
  bool consecutive = true;
  for (int64_t d = least; d < most; ++d) consecutive &= rows.of(d + 1) == rows.of(d) + 1;
  if (aligned) {
    row = row / kLanes * kLanes;
    end = row + cpu::round_up(end - row, kLanes);
  }
  return {first, count, row, end - row, consecutive};
}

template <typename Body>
void for_bands(const RelativeRows& rows, const cpu::HeadTask& task, bool of_queries, bool aligned,
               const Body& body) {
  const int64_t all = of_queries ? task.queries : task.keys;
  for (int64_t first = 0; first < all; first += cpu::kQueryBlock) {
    body(band_of(rows, task, of_queries, first, aligned));
  }
}

// Floats of a band's products.
int64_t band_floats(int64_t table_rows) {
  return cpu::kQueryBlock * cpu::round_up(table_rows + kLanes, kLanes);
}

// Calls body(element of the band's products, element of the scores) for each of its pairs.
// `scores` begins at the sequence's first query.
template <typename Body>
HWY_INLINE void for_pairs(const RelativeRows& rows, const cpu::HeadTask& task, bool of_queries,
                          const Band& band, float* products, float* scores, int64_t stride,
                          const Body& body) {
  if (of_queries) {
    for (int64_t i = 0; i < band.count; ++i) {
      const int64_t query = band.first + i;
      float* const from = products + i * band.width - band.row;
      float* const to = scores + query * stride;
      if (band.consecutive) {
        float* const own = from + rows.of(query);
        for (int64_t j = 0; j < task.keys; ++j) body(own[-j], to[j]);
        continue;
      }
      for (int64_t j = 0; j < task.keys; ++j) body(from[rows.of(query - j)], to[j]);
    }
    return;
  }
  for (int64_t query = 0; query < task.queries; ++query) {
    float* const to = scores + query * stride + band.first;
    if (band.consecutive) {
      float* const own = products + rows.of(query - band.first) - band.row;
      for (int64_t j = 0; j < band.count; ++j) body(own[j * (band.width - 1)], to[j]);
      continue;
    }
    for (int64_t j = 0; j < band.count; ++j) {
      body(products[j * band.width + rows.of(query - band.first - j) - band.row], to[j]);
    }
  }
}

// A head's operands of one side of the pairs: queries and pk, or keys and
// pq.
struct Side {
  bool of_queries;
  Tensor x, table;  // packed queries or keys; pk or pq
  Tensor dx, dtable;
};

template <class T>
T* first_row(const cpu::HeadTask& task, const Side& side, Tensor x, int64_t row, int64_t size) {
  return task.at<T>(x, (side.of_queries ? task.first_query : task.first_key) + row, size);
}

template <class T>
void head_scores(const AttentionShape& shape, const RelativeRows& rows, int64_t head, int64_t begin,
                 int64_t end, const Side& side, bool add, Tensor scores) {
  const int64_t size = shape.head_size, table_rows = side.table.rows;
  const int64_t padded = cpu::round_up(table_rows + kLanes, kLanes);
  const int64_t padded_size = cpu::round_up(size, kLanes);
  float* const table = cpu::scratch(
      cpu::Scratch::task, size * padded + band_floats(table_rows) + cpu::kQueryBlock * padded_size);
  float* const products = table + size * padded;
  float* const packed = products + band_floats(table_rows);
  pack_transposed(side.table.f32() + head * size, side.table.stride, table_rows, size, shape.scale,
                  table, padded, 0);
  for (int64_t b = begin; b < end; ++b) {
    const cpu::HeadTask task = cpu::head_task(shape, b, head);
    float* const of_task =
        scores.f32() + (head * (scores.rows / shape.heads) + task.first_query) * scores.stride;
    for_bands(rows, task, side.of_queries, true, [&](const Band& band) HWY_ATTR {
      pack(first_row<T>(task, side, side.x, band.first, size), side.x.stride, band.count, size,
           packed, padded_size, 0);
      product<false>(band.count, band.width, size, {packed, padded_size}, table + band.row, padded,
                     products, band.width, false);
      if (add) {
        for_pairs(rows, task, side.of_queries, band, products, of_task, scores.stride,
                  [](float& from, float& to) { to += from; });
      } else {
        for_pairs(rows, task, side.of_queries, band, products, of_task, scores.stride,
                  [](float& from, float& to) { to = from; });
      }
    });
  }
}

template <class T>
void head_gradients(const AttentionShape& shape, const RelativeRows& rows, int64_t head,
                    const Side& side, Tensor dscores) {
  const int64_t size = shape.head_size, table_rows = side.table.rows;
  const int64_t padded_size = cpu::round_up(size, kLanes);
  float* const table =
      cpu::scratch(cpu::Scratch::task, 2 * table_rows * padded_size + band_floats(table_rows) +
                                           2 * cpu::kQueryBlock * padded_size);
  float* const dtable = table + table_rows * padded_size;
  float* const products = dtable + table_rows * padded_size;
  float* const packed = products + band_floats(table_rows);
  float* const dx = packed + cpu::kQueryBlock * padded_size;
  pack(side.table.f32() + head * size, side.table.stride, table_rows, size, table, padded_size, 0);
  std::fill_n(dtable, table_rows * padded_size, 0.0f);
  for (int64_t b = 0; b < shape.queries.count; ++b) {
    const cpu::HeadTask task = cpu::head_task(shape, b, head);
    float* const of_task =
        dscores.f32() + (head * (dscores.rows / shape.heads) + task.first_query) * dscores.stride;
    for_bands(rows, task, side.of_queries, false, [&](const Band& band) HWY_ATTR {
      pack(first_row<T>(task, side, side.x, band.first, size), side.x.stride, band.count, size,
           packed, padded_size, 0);
      std::fill_n(products, band.count * band.width, 0.0f);
      for_pairs(rows, task, side.of_queries, band, products, of_task, dscores.stride,
                [scale = shape.scale](float& to, float& from) { to += scale * from; });
      product<false>(band.count, padded_size, band.width, {products, band.width},
                     table + band.row * padded_size, padded_size, dx, padded_size, false);
      product<true>(band.width, padded_size, band.count, {products, band.width}, packed,
                    padded_size, dtable + band.row * padded_size, padded_size, true);
      for (int64_t i = 0; i < band.count; ++i) {
        T* const to = first_row<T>(task, side, side.dx, band.first + i, size);
        for_lanes(size, [&](auto d, int64_t c) HWY_ATTR {
          store_as(d, hn::Add(load_as(d, to + c), hn::LoadU(d, dx + i * padded_size + c)), to + c);
        });
      }
    });
  }
  for (int64_t r = 0; r < table_rows; ++r) {
    std::copy_n(dtable + r * padded_size, size,
                side.dtable.f32() + r * side.dtable.stride + head * size);
  }
}

void pair_scores_task(const AttentionShape& shape, const RelativeRows& rows, int64_t head,
                      int64_t begin, int64_t end, Tensor q, Tensor k, Tensor pk, Tensor pq,
                      Tensor scores) {
  const auto side = q.dtype == DType::bf16 ? head_scores<bfloat16> : head_scores<float>;
  if (pk) side(shape, rows, head, begin, end, {true, q, pk, {}, {}}, false, scores);
  if (pq) side(shape, rows, head, begin, end, {false, k, pq, {}, {}}, bool(pk), scores);
}

void pair_gradients_task(const AttentionShape& shape, const RelativeRows& rows, int64_t head,
                         Tensor dscores, Tensor q, Tensor k, Tensor pk, Tensor pq, Tensor dq,
                         Tensor dk, Tensor dpk, Tensor dpq) {
  const auto side = q.dtype == DType::bf16 ? head_gradients<bfloat16> : head_gradients<float>;
  if (pk) side(shape, rows, head, {true, q, pk, dq, dpk}, dscores);
  if (pq) side(shape, rows, head, {false, k, pq, dk, dpq}, dscores);
}

}  // namespace
}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/cpu/cpu_backend.h"

namespace finetune {
HWY_EXPORT(pair_scores_task);
HWY_EXPORT(pair_gradients_task);

namespace {

void check(const AttentionShape& shape, const RelativeRows& rows, Tensor q, Tensor k, Tensor pk,
           Tensor pq, Tensor scores) {
  const int64_t width = shape.heads * shape.head_size;
  FINETUNE_CHECK(q.cols == width && k.cols == width && q.dtype == k.dtype && (pk || pq));
  for (Tensor table : {pk, pq}) FINETUNE_CHECK(!table || table.cols == width);
  FINETUNE_CHECK(scores.rows == shape.heads * q.rows && scores.cols >= shape.keys.max_length);
  FINETUNE_CHECK(shape.window < 0 && rows.span >= shape.keys.max_length);
}

}  // namespace

void CpuBackend::pair_scores(const AttentionShape& shape, RelativeRows rows, Tensor q, Tensor k,
                             Tensor pk, Tensor pq, Tensor scores) {
  check(shape, rows, q, k, pk, pq, scores);
  // A task packs the table once for its sequences.
  constexpr int64_t kTasksOfAThread = 4;
  const int64_t sequences = shape.queries.count;
  const int64_t wanted = std::max<int64_t>(1, kTasksOfAThread * threads() / shape.heads);
  const int64_t size = (sequences + wanted - 1) / wanted, groups = (sequences + size - 1) / size;
  cpu::for_tasks(shape.heads * groups, [&](int64_t i) {
    const int64_t begin = i / shape.heads * size, end = std::min(begin + size, sequences);
    HWY_DYNAMIC_DISPATCH(pair_scores_task)
    (shape, rows, i % shape.heads, begin, end, q, k, pk, pq, scores);
  });
}

void CpuBackend::pair_scores_backward(const AttentionShape& shape, RelativeRows rows,
                                      Tensor dscores, Tensor q, Tensor k, Tensor pk, Tensor pq,
                                      Tensor dq, Tensor dk, Tensor dpk, Tensor dpq) {
  check(shape, rows, q, k, pk, pq, dscores);
  cpu::for_tasks(shape.heads, [&](int64_t head) {
    HWY_DYNAMIC_DISPATCH(pair_gradients_task)
    (shape, rows, head, dscores, q, k, pk, pq, dq, dk, dpk, dpq);
  });
}

}  // namespace finetune
#endif
