// Scores by relative position and their gradients in double precision.
#include <vector>

#include "ops/reference/reference_backend.h"

namespace finetune {
namespace {

using reference::at;
using reference::check_shape;

struct Pair {
  int64_t head, query, key;  // rows of the packed tensors
  int64_t row;               // of the table
  int64_t score, column;     // of the scores
};

// In order of heads, sequences, queries and keys.
template <typename Body>
void for_each_pair(const AttentionShape& shape, const RelativeRows& rows, int64_t query_rows,
                   Body&& body) {
  for (int64_t h = 0; h < shape.heads; ++h) {
    for (int64_t b = 0; b < shape.keys.count; ++b) {
      const int32_t *q = shape.queries.offsets + b, *k = shape.keys.offsets + b;
      for (int64_t i = 0; i < q[1] - q[0]; ++i) {
        for (int64_t j = 0; j < k[1] - k[0]; ++j) {
          body(Pair{h, q[0] + i, k[0] + j, rows.of(i - j), h * query_rows + q[0] + i, j});
        }
      }
    }
  }
}

}  // namespace

void ReferenceBackend::pair_scores(const AttentionShape& shape, RelativeRows rows, Tensor q,
                                   Tensor k, Tensor pk, Tensor pq, Tensor scores) {
  const int64_t size = shape.head_size, width = shape.heads * size;
  check_shape(q, q.rows, width);
  check_shape(k, k.rows, width);
  check_shape(scores, shape.heads * q.rows, scores.cols);
  for_each_pair(shape, rows, q.rows, [&](const Pair& p) {
    double sum = 0;
    for (int64_t d = p.head * size; d < (p.head + 1) * size; ++d) {
      if (pk) sum += double(at(q, p.query, d)) * double(at(pk, p.row, d));
      if (pq) sum += double(at(k, p.key, d)) * double(at(pq, p.row, d));
    }
    at(scores, p.score, p.column) = float(double(shape.scale) * sum);
  });
}

void ReferenceBackend::pair_scores_backward(const AttentionShape& shape, RelativeRows rows,
                                            Tensor dscores, Tensor q, Tensor k, Tensor pk,
                                            Tensor pq, Tensor dq, Tensor dk, Tensor dpk,
                                            Tensor dpq) {
  const int64_t size = shape.head_size;
  // Gradients of the packed tensor and of the table.
  const auto side = [&](Tensor x, Tensor table, Tensor dx, Tensor dtable, int64_t Pair::*row_of) {
    if (!table) return;
    check_shape(dtable, table.rows, table.cols);
    std::vector<double> to_x(size_t(x.rows * x.cols)), to_table(size_t(table.rows * table.cols));
    for_each_pair(shape, rows, q.rows, [&](const Pair& p) {
      const int64_t row = p.*row_of;
      const double gradient = double(shape.scale) * double(at(dscores, p.score, p.column));
      for (int64_t d = p.head * size; d < (p.head + 1) * size; ++d) {
        to_x[size_t(row * x.cols + d)] += gradient * double(at(table, p.row, d));
        to_table[size_t(p.row * x.cols + d)] += gradient * double(at(x, row, d));
      }
    });
    for (int64_t r = 0; r < x.rows; ++r) {
      for (int64_t d = 0; d < x.cols; ++d) {
        at(dx, r, d) = float(double(at(dx, r, d)) + to_x[size_t(r * x.cols + d)]);
      }
    }
    for (int64_t r = 0; r < table.rows; ++r) {
      for (int64_t d = 0; d < x.cols; ++d) {
        at(dtable, r, d) = float(to_table[size_t(r * x.cols + d)]);
      }
    }
  };
  side(q, pk, dq, dpk, &Pair::query);
  side(k, pq, dk, dpq, &Pair::key);
}

}  // namespace finetune
