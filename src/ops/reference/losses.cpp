// Reference losses and their gradients in double precision.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/reference/reference_backend.h"

namespace finetune {
namespace {

using reference::at;
using reference::check_shape;

double log_sum_exp(const std::vector<double>& x) {
  double largest = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double value : x) sum += std::exp(value - largest);
  return largest + std::log(sum);
}

// If the scale is 0: sets the loss and the sample's `rows` of dlogits to 0 and returns true.
bool left_out(double scale, Tensor losses, int64_t sample, Tensor dlogits, int64_t first,
              int64_t rows) {
  if (scale != 0) return false;
  at(losses, 0, sample) = 0.0f;
  if (!dlogits) return true;
  for (int64_t r = first; r < first + rows; ++r) {
    for (int64_t c = 0; c < dlogits.cols; ++c) at(dlogits, r, c) = 0.0f;
  }
  return true;
}

}  // namespace

void ReferenceBackend::cross_entropy(Tensor logits, const int32_t* labels, Tensor weights,
                                     float smoothing, LossScale scale, Tensor losses,
                                     Tensor dlogits) {
  const int64_t classes = logits.cols;
  check_shape(losses, 1, logits.rows);
  if (weights) check_shape(weights, 1, classes);
  if (dlogits) check_shape(dlogits, logits.rows, classes);
  std::vector<double> x(static_cast<size_t>(classes));
  for (int64_t b = 0; b < logits.rows; ++b) {
    const double factor = double(scale.of(b));
    if (left_out(factor, losses, b, dlogits, b, 1)) continue;
    for (int64_t c = 0; c < classes; ++c) x[size_t(c)] = at(logits, b, c);
    double log_sum = log_sum_exp(x);
    // The loss is sum_c share[c] * nll(c), with nll(c) = log_sum - x[c].
    std::vector<double> share(x.size());
    double loss = 0, total = 0;
    const double weight = weights ? at(weights, 0, labels[b]) : 1.0;
    for (int64_t c = 0; c < classes; ++c) {
      size_t i = size_t(c);
      share[i] = weight * double(smoothing) / double(classes);
      if (c == labels[b]) share[i] += weight * (1.0 - double(smoothing));
      loss += share[i] * (log_sum - x[i]);
      total += share[i];
    }
    at(losses, 0, b) = float(loss);
    if (!dlogits) continue;
    for (int64_t c = 0; c < classes; ++c) {
      size_t i = size_t(c);
      at(dlogits, b, c) = float(factor * (total * std::exp(x[i] - log_sum) - share[i]));
    }
  }
}

void ReferenceBackend::binary_cross_entropy(Tensor logits, Tensor targets, Tensor weights,
                                            LossScale scale, Tensor losses, Tensor dlogits) {
  const int64_t classes = logits.cols;
  check_shape(targets, logits.rows, classes);
  check_shape(losses, 1, logits.rows);
  if (weights) check_shape(weights, 1, classes);
  if (dlogits) check_shape(dlogits, logits.rows, classes);
  for (int64_t b = 0; b < logits.rows; ++b) {
    const double factor = double(scale.of(b));
    if (left_out(factor, losses, b, dlogits, b, 1)) continue;
    double loss = 0;
    for (int64_t c = 0; c < classes; ++c) {
      double x = at(logits, b, c), target = at(targets, b, c);
      double share = (weights ? at(weights, 0, c) : 1.0) / double(classes);
      loss += share * (std::max(x, 0.0) - x * target + std::log1p(std::exp(-std::abs(x))));
      double probability = 1.0 / (1.0 + std::exp(-x));
      if (dlogits) at(dlogits, b, c) = float(factor * share * (probability - target));
    }
    at(losses, 0, b) = float(loss);
  }
}

void ReferenceBackend::squared_error(Tensor logits, Tensor targets, LossScale scale, Tensor losses,
                                     Tensor dlogits) {
  check_shape(logits, logits.rows, 1);
  check_shape(targets, 1, logits.rows);
  check_shape(losses, 1, logits.rows);
  if (dlogits) check_shape(dlogits, logits.rows, 1);
  for (int64_t b = 0; b < logits.rows; ++b) {
    const double factor = double(scale.of(b));
    if (left_out(factor, losses, b, dlogits, b, 1)) continue;
    double difference = double(at(logits, b, 0)) - at(targets, 0, b);
    at(losses, 0, b) = float(difference * difference);
    if (dlogits) at(dlogits, b, 0) = float(factor * 2.0 * difference);
  }
}

void ReferenceBackend::span_cross_entropy(Tensor logits, Segments segments, const int32_t* starts,
                                          const int32_t* ends, LossScale scale, Tensor losses,
                                          Tensor dlogits) {
  check_shape(logits, logits.rows, 2);
  check_shape(losses, 1, segments.count);
  if (dlogits) check_shape(dlogits, logits.rows, 2);
  for (int64_t b = 0; b < segments.count; ++b) {
    int64_t begin = segments.offsets[b], length = segments.offsets[b + 1] - begin;
    const double factor = double(scale.of(b));
    if (left_out(factor, losses, b, dlogits, begin, length)) continue;
    double loss = 0;
    for (int64_t column = 0; column < 2; ++column) {
      int64_t answer = column == 0 ? starts[b] : ends[b];
      FINETUNE_CHECK(answer >= 0 && answer < length);
      std::vector<double> x(static_cast<size_t>(length));
      for (int64_t i = 0; i < length; ++i) x[size_t(i)] = at(logits, begin + i, column);
      double log_sum = log_sum_exp(x);
      loss += 0.5 * (log_sum - x[size_t(answer)]);
      if (!dlogits) continue;
      for (int64_t i = 0; i < length; ++i) {
        double gradient = std::exp(x[size_t(i)] - log_sum) - (i == answer ? 1.0 : 0.0);
        at(dlogits, begin + i, column) = float(factor * 0.5 * gradient);
      }
    }
    at(losses, 0, b) = float(loss);
  }
}

}  // namespace finetune
