// Reference attention and its gradients in double precision.
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "ops/reference/reference_backend.h"

namespace finetune {
namespace {

using reference::at;
using reference::check_shape;
using reference::values_of;

// The rows and columns of one head of one sequence.
struct Block {
  int64_t sequence, head;
  int64_t query_begin, queries;
  int64_t key_begin, keys;
  int64_t column;  // first of head_size columns
};

// A tensor's values, row by row.
struct Rows {
  std::vector<float> values;
  int64_t cols;
  explicit Rows(const Tensor& t) : values(values_of(t)), cols(t.cols) {}
  const float* row(int64_t r) const { return values.data() + r * cols; }
};

template <typename Body>
void for_each_block(const AttentionShape& shape, Body&& body) {
  FINETUNE_CHECK(shape.queries.count == shape.keys.count);
  for (int64_t b = 0; b < shape.keys.count; ++b) {
    for (int64_t head = 0; head < shape.heads; ++head) {
      const int32_t* q = shape.queries.offsets;
      const int32_t* k = shape.keys.offsets;
      body(Block{b, head, q[b], q[b + 1] - q[b], k[b], k[b + 1] - k[b], head * shape.head_size});
    }
  }
}

// Probabilities of query i over the block's keys, before dropout; returns log(sum(exp)).
double softmax_row(const AttentionShape& shape, const Block& block, const Rows& q, const Rows& k,
                   int64_t i, std::vector<double>& p) {
  const float* const query = q.row(block.query_begin + i) + block.column;
  p.assign(static_cast<size_t>(block.keys), 0.0);
  const int64_t begin = shape.first_key(i), end = shape.end_key(i, block.keys);
  for (int64_t j = begin; j < end; ++j) {
    const float* const key = k.row(block.key_begin + j) + block.column;
    double dot = 0;
    for (int64_t d = 0; d < shape.head_size; ++d) dot += double(query[d]) * double(key[d]);
    p[size_t(j)] = double(shape.scale) * dot;
    if (shape.bias.on())
      p[size_t(j)] += double(shape.bias.row(block.head, block.query_begin, i)[j]);
  }
  const auto first = p.begin() + begin, last = p.begin() + end;
  double largest = *std::max_element(first, last);
  double sum = 0;
  for (double& value : std::span(first, last)) sum += value = std::exp(value - largest);
  for (double& value : std::span(first, last)) value /= sum;
  return largest + std::log(sum);
}

double block_mask(const AttentionShape& shape, const Dropout& dropout, const Block& block,
                  int64_t i, int64_t j) {
  if (!dropout.on()) return 1.0;
  return reference::mask(dropout, shape.head_name(block.head), shape.samples[block.sequence],
                         i * block.keys + j);
}

}  // namespace

void ReferenceBackend::attention(const AttentionShape& shape, Dropout dropout, Tensor q, Tensor k,
                                 Tensor v, Tensor out, Tensor lse, Tensor /*mask*/) {
  dropout = dropout.taken();
  check_shape(q, q.rows, shape.heads * shape.head_size);
  check_shape(k, k.rows, q.cols);
  check_shape(v, k.rows, q.cols);
  check_shape(out, q.rows, q.cols);
  if (lse) check_shape(lse, shape.heads, q.rows);
  const Rows queries(q), keys(k), values(v);
  std::vector<double> p, sums;
  for_each_block(shape, [&](const Block& block) {
    for (int64_t i = 0; i < block.queries; ++i) {
      double log_sum = softmax_row(shape, block, queries, keys, i, p);
      if (lse) at(lse, block.head, block.query_begin + i) = float(log_sum);
      sums.assign(static_cast<size_t>(shape.head_size), 0.0);
      for (int64_t j = 0; j < block.keys; ++j) {
        const double weight = p[size_t(j)] * block_mask(shape, dropout, block, i, j);
        const float* const value = values.row(block.key_begin + j) + block.column;
        for (int64_t d = 0; d < shape.head_size; ++d) sums[size_t(d)] += weight * double(value[d]);
      }
      for (int64_t d = 0; d < shape.head_size; ++d) {
        at(out, block.query_begin + i, block.column + d) = float(sums[size_t(d)]);
      }
    }
  });
}

// dP = mask * (dout V^T); dS = P * (dP - sum(P * dP)); dq = scale * dS K; dk = scale * dS^T Q; dv =
// (P * mask)^T dout. Probabilities are recomputed, so `out` and `lse` are not needed.
void ReferenceBackend::attention_backward(const AttentionShape& shape, Dropout dropout, Tensor q,
                                          Tensor k, Tensor v, Tensor out, Tensor lse, Tensor dout,
                                          Tensor dq, Tensor dk, Tensor dv, Tensor /*mask*/) {
  dropout = dropout.taken();
  check_shape(q, q.rows, shape.heads * shape.head_size);
  check_shape(k, k.rows, q.cols);
  check_shape(v, k.rows, q.cols);
  check_shape(out, q.rows, q.cols);
  check_shape(lse, shape.heads, q.rows);
  check_shape(dout, q.rows, q.cols);
  check_shape(dq, q.rows, q.cols);
  check_shape(dk, k.rows, k.cols);
  check_shape(dv, k.rows, k.cols);
  const int64_t size = shape.head_size;
  const Rows queries(q), keys(k), values(v), gradients(dout);
  std::vector<double> p, masks, dp;
  for_each_block(shape, [&](const Block& block) {
    std::vector<double> key_sums(static_cast<size_t>(block.keys * size), 0.0);
    std::vector<double> value_sums(static_cast<size_t>(block.keys * size), 0.0);
    std::vector<double> bias_sums(size_t(2 * block.keys - 1), 0.0);
    for (int64_t i = 0; i < block.queries; ++i) {
      softmax_row(shape, block, queries, keys, i, p);
      masks.assign(p.size(), 0.0);
      dp.assign(p.size(), 0.0);
      double weighted = 0;
      for (int64_t j = 0; j < block.keys; ++j) {
        masks[size_t(j)] = block_mask(shape, dropout, block, i, j);
        const float* const gradient = gradients.row(block.query_begin + i) + block.column;
        const float* const value = values.row(block.key_begin + j) + block.column;
        for (int64_t d = 0; d < size; ++d) {
          dp[size_t(j)] += masks[size_t(j)] * double(gradient[d]) * double(value[d]);
        }
        weighted += p[size_t(j)] * dp[size_t(j)];
      }
      for (int64_t j = 0; j < block.keys; ++j) {
        const double of_score = p[size_t(j)] * (dp[size_t(j)] - weighted);
        bias_sums[size_t(j - i + block.keys - 1)] += of_score;
        if (!shape.bias.gradient || !shape.bias.of_pairs()) continue;
        shape.bias.gradient[shape.bias.pair_row(block.head, block.query_begin + i) + j] =
            float(of_score);
      }
      for (int64_t d = 0; d < size; ++d) {
        double dout_value = at(dout, block.query_begin + i, block.column + d);
        double query = at(q, block.query_begin + i, block.column + d);
        double query_sum = 0;
        for (int64_t j = 0; j < block.keys; ++j) {
          double ds = double(shape.scale) * p[size_t(j)] * (dp[size_t(j)] - weighted);
          query_sum += ds * double(keys.row(block.key_begin + j)[block.column + d]);
          key_sums[size_t(j * size + d)] += ds * query;
          value_sums[size_t(j * size + d)] += p[size_t(j)] * masks[size_t(j)] * dout_value;
        }
        at(dq, block.query_begin + i, block.column + d) = float(query_sum);
      }
    }
    if (shape.bias.gradient && !shape.bias.of_pairs()) {
      float* const gradients = shape.bias.gradients(block.head, block.key_begin);
      for (size_t d = 0; d < bias_sums.size(); ++d) gradients[d] = float(bias_sums[d]);
    }
    for (int64_t j = 0; j < block.keys; ++j) {
      for (int64_t d = 0; d < size; ++d) {
        at(dk, block.key_begin + j, block.column + d) = float(key_sums[size_t(j * size + d)]);
        at(dv, block.key_begin + j, block.column + d) = float(value_sums[size_t(j * size + d)]);
      }
    }
  });
}

void ReferenceBackend::position_bias(Tensor table, Tensor values) {
  check_shape(table, kPositionBuckets, values.rows);
  const int64_t span = (values.cols + 1) / 2;
  for (int64_t h = 0; h < values.rows; ++h) {
    for (int64_t d = 0; d < values.cols; ++d) {
      at(values, h, d) = at(table, position_bucket(d - span + 1), h);
    }
  }
}

void ReferenceBackend::position_bias_backward(Tensor dvalues, Segments keys, Tensor dtable,
                                              bool accumulate) {
  check_shape(dtable, kPositionBuckets, dvalues.rows);
  for (int64_t h = 0; h < dvalues.rows; ++h) {
    double sums[kPositionBuckets] = {};
    for (int64_t b = 0; b < keys.count; ++b) {
      const int64_t first = keys.offsets[b], length = keys.offsets[b + 1] - first;
      for (int64_t d = 1 - length; d < length; ++d) {
        sums[position_bucket(d)] += double(at(dvalues, h, 2 * first + length - 1 + d));
      }
    }
    for (int32_t k = 0; k < kPositionBuckets; ++k) {
      at(dtable, k, h) = float(sums[k] + (accumulate ? double(at(dtable, k, h)) : 0));
    }
  }
}

}  // namespace finetune
