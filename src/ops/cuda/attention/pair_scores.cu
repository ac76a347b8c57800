// Scores by relative position and their gradients. Every sum is in a fixed order, without atomic
// additions.
#include "ops/cuda/attention/attention_tiles.h"
#include "ops/cuda/ops.h"

namespace finetune::cuda {
namespace {

constexpr int kSide = 32;              // queries and keys of a tile
constexpr int kDepth = 32;             // columns of a head at a time
constexpr int kTableRows = 2 * kSide;  // that a tile's pairs have, where rows grow by one
constexpr int kPairThreads = 256;
constexpr int kPairsOfThread = kSide * kSide / kPairThreads;

template <typename T>
struct PairOperands {
  MatrixOf<T> q, k;
  Matrix pk, pq;
};

// tile = rows [first, first + count) of x from `column` on, `depth` columns; the rest is zero.
template <int kRows, typename T>
__device__ inline void load_part(float (&tile)[kRows][kDepth + 1], const MatrixOf<T>& x,
                                 int64_t first, int64_t count, int64_t column, int64_t depth) {
  for (int i = int(threadIdx.x); i < kRows * kDepth; i += kPairThreads) {
    const int r = i / kDepth, d = i % kDepth;
    tile[r][d] = r < count && d < depth ? as_float(x.row(first + r)[column + d]) : 0.0f;
  }
}

// Block x is a sequence, block y a head, block z a tile of kSide queries. A distance may skip rows
// of the table; pairs whose rows are not in the tile read them from memory.
template <typename T>
__global__ void __launch_bounds__(kPairThreads)
    pair_scores_kernel(AttentionShape shape, RelativeRows rows, PairOperands<T> t, Matrix scores) {
  wait_for_earlier_kernels();
  __shared__ float query_tile[kSide][kDepth + 1], key_tile[kSide][kDepth + 1];
  __shared__ float pk_tile[kTableRows][kDepth + 1], pq_tile[kTableRows][kDepth + 1];
  const int64_t b = blockIdx.x, head = blockIdx.y, size = shape.head_size;
  const int64_t first_query = shape.queries.offsets[b], first_key = shape.keys.offsets[b];
  const int64_t queries = shape.queries.offsets[b + 1] - first_query;
  const int64_t keys = shape.keys.offsets[b + 1] - first_key;
  const int64_t begin = int64_t(blockIdx.z) * kSide;
  if (begin >= queries) return;
  const int64_t count = queries - begin < kSide ? queries - begin : kSide;
  for (int64_t tile = 0; tile < keys; tile += kSide) {
    const int64_t others = keys - tile < kSide ? keys - tile : kSide;
    const int64_t low = rows.of(begin - (tile + others - 1));
    const int64_t held = rows.of(begin + count - 1 - tile) - low + 1;
    float sums[kPairsOfThread] = {};
    for (int64_t part = 0; part < size; part += kDepth) {
      const int64_t depth = size - part < kDepth ? size - part : kDepth;
      const int64_t column = head * size + part;
      __syncthreads();  // all threads have read the previous tiles
      load_part(query_tile, t.q, first_query + begin, count, column, depth);
      load_part(key_tile, t.k, first_key + tile, others, column, depth);
      if (t.pk.data) load_part(pk_tile, t.pk, low, held, column, depth);
      if (t.pq.data) load_part(pq_tile, t.pq, low, held, column, depth);
      __syncthreads();
      for (int n = 0; n < kPairsOfThread; ++n) {
        const int pair = int(threadIdx.x) + n * kPairThreads, i = pair / kSide, j = pair % kSide;
        if (i >= count || j >= others) continue;
        const int64_t row = rows.of(begin + i - (tile + j)), place = row - low;
        for (int d = 0; d < depth; ++d) {
          if (t.pk.data) {
            const float from = place < kTableRows ? pk_tile[place][d] : t.pk.row(row)[column + d];
            sums[n] = fmaf(query_tile[i][d], from, sums[n]);
          }
          if (t.pq.data) {
            const float from = place < kTableRows ? pq_tile[place][d] : t.pq.row(row)[column + d];
            sums[n] = fmaf(key_tile[j][d], from, sums[n]);
          }
        }
      }
    }
    for (int n = 0; n < kPairsOfThread; ++n) {
      const int pair = int(threadIdx.x) + n * kPairThreads, i = pair / kSide, j = pair % kSide;
      if (i >= count || j >= others) continue;
      const int64_t query_rows = scores.rows / shape.heads;
      scores.row(head * query_rows + first_query + begin + i)[tile + j] = shape.scale * sums[n];
    }
  }
}

// Adds the gradient of a packed query (or key): of all its pairs, in order. Block x is its row,
// block y a head; a thread has a column.
template <bool kOfQueries, typename T>
__global__ void pair_input_gradient_kernel(AttentionShape shape, RelativeRows rows, Matrix dscores,
                                           Matrix table, MatrixOf<T> dx) {
  wait_for_earlier_kernels();
  const Segments& own = kOfQueries ? shape.queries : shape.keys;
  const int64_t row = blockIdx.x, head = blockIdx.y, query_rows = dscores.rows / shape.heads;
  int64_t b = 0, above = own.count;  // the row's sequence
  while (above - b > 1) {
    const int64_t middle = (b + above) / 2;
    (own.offsets[middle] <= row ? b : above) = middle;
  }
  const int64_t first_query = shape.queries.offsets[b], first_key = shape.keys.offsets[b];
  const int64_t queries = shape.queries.offsets[b + 1] - first_query;
  const int64_t keys = shape.keys.offsets[b + 1] - first_key;
  const int64_t place = row - own.offsets[b], others = kOfQueries ? keys : queries;
  for (int64_t d = threadIdx.x; d < shape.head_size; d += blockDim.x) {
    const int64_t column = head * shape.head_size + d;
    float sum = 0;
    for (int64_t n = 0; n < others; ++n) {
      const int64_t i = kOfQueries ? place : n, j = kOfQueries ? n : place;
      const float gradient = dscores.row(head * query_rows + first_query + i)[j];
      sum = fmaf(gradient, table.row(rows.of(i - j))[column], sum);
    }
    T* const to = dx.row(row) + column;
    put(to, as_float(*to) + shape.scale * sum);
  }
}

// The first distance, of those below `span`, whose row is at least `row`.
__device__ inline int64_t first_distance(const RelativeRows& rows, int64_t row) {
  int64_t low = 1 - rows.span, end = rows.span;
  while (low < end) {
    const int64_t middle = low + (end - low) / 2;
    if (rows.of(middle) < row) {
      low = middle + 1;
    } else {
      end = middle;
    }
  }
  return low;
}

// The gradient of a row of the table: over sequences, queries and keys in order. Block x is the
// row, block y a head; a thread has a column.
template <bool kOfQueries, typename T>
__global__ void pair_table_gradient_kernel(AttentionShape shape, RelativeRows rows, Matrix dscores,
                                           MatrixOf<T> x, Matrix dtable) {
  wait_for_earlier_kernels();
  const int64_t row = blockIdx.x, head = blockIdx.y, query_rows = dscores.rows / shape.heads;
  const int64_t least = first_distance(rows, row), end = first_distance(rows, row + 1);
  for (int64_t d = threadIdx.x; d < shape.head_size; d += blockDim.x) {
    const int64_t column = head * shape.head_size + d;
    float sum = 0;
    for (int64_t b = 0; b < shape.queries.count; ++b) {
      const int64_t first_query = shape.queries.offsets[b], first_key = shape.keys.offsets[b];
      const int64_t queries = shape.queries.offsets[b + 1] - first_query;
      const int64_t keys = shape.keys.offsets[b + 1] - first_key;
      for (int64_t i = 0; i < queries; ++i) {
        const float* const gradients = dscores.row(head * query_rows + first_query + i);
        const int64_t from = i - end + 1 > 0 ? i - end + 1 : 0;
        const int64_t to = i - least + 1 < keys ? i - least + 1 : keys;
        for (int64_t j = from; j < to; ++j) {
          const int64_t of = kOfQueries ? first_query + i : first_key + j;
          sum = fmaf(gradients[j], as_float(x.row(of)[column]), sum);
        }
      }
    }
    dtable.row(row)[column] = shape.scale * sum;
  }
}

int threads_of(const AttentionShape& shape) {
  return int(divide_up(shape.head_size, kWarp)) * kWarp;
}

template <bool kOfQueries, typename T>
void launch_gradients(Context& context, const AttentionShape& shape, const RelativeRows& rows,
                      Matrix dscores, MatrixOf<T> x, Matrix table, MatrixOf<T> dx, Matrix dtable) {
  if (!table.data) return;
  launch(context, dim3(unsigned(x.rows), unsigned(shape.heads)), threads_of(shape),
         pair_input_gradient_kernel<kOfQueries, T>, shape, rows, dscores, table, dx);
  launch(context, dim3(unsigned(table.rows), unsigned(shape.heads)), threads_of(shape),
         pair_table_gradient_kernel<kOfQueries, T>, shape, rows, dscores, x, dtable);
}

}  // namespace

void pair_scores(Context& context, const AttentionShape& shape, RelativeRows rows, AnyMatrix q,
                 AnyMatrix k, Matrix pk, Matrix pq, Matrix scores) {
  for_type(q.bf16, [&](auto element) {
    using T = decltype(element);
    const PairOperands<T> t = {q.as<T>(), k.as<T>(), pk, pq};
    launch(context, attention_grid(shape, shape.queries, kSide), kPairThreads,
           pair_scores_kernel<T>, shape, rows, t, scores);
  });
}

void pair_scores_backward(Context& context, const AttentionShape& shape, RelativeRows rows,
                          Matrix dscores, AnyMatrix q, AnyMatrix k, Matrix pk, Matrix pq,
                          AnyMatrix dq, AnyMatrix dk, Matrix dpk, Matrix dpq) {
  for_type(q.bf16, [&](auto element) {
    using T = decltype(element);
    launch_gradients<true>(context, shape, rows, dscores, q.as<T>(), pk, dq.as<T>(), dpk);
    launch_gradients<false>(context, shape, rows, dscores, k.as<T>(), pq, dk.as<T>(), dpq);
  });
}

}  // namespace finetune::cuda
