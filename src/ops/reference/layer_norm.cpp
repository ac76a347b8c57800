// Reference layer normalisation and its gradients in double precision.
#include <cmath>
#include <vector>

#include "ops/reference/reference_backend.h"

namespace finetune {

using reference::at;
using reference::check_shape;

void ReferenceBackend::add_layer_norm(Tensor x, Tensor residual, Dropout dropout, RowNames names,
                                      Tensor gamma, Tensor beta, float epsilon, Tensor s,
                                      Tensor stats, Tensor y, Tensor rounded) {
  dropout = dropout.taken();
  const int64_t n = x.cols;
  check_shape(y, x.rows, n);
  check_shape(gamma, 1, n);
  if (beta) check_shape(beta, 1, n);
  if (residual) check_shape(residual, x.rows, n);
  if (s) check_shape(s, x.rows, n);
  if (stats) check_shape(stats, x.rows, 2);
  if (rounded) check_shape(rounded, x.rows, n);
  std::vector<double> row(static_cast<size_t>(n));
  for (int64_t r = 0; r < x.rows; ++r) {
    double mean = 0;
    for (int64_t c = 0; c < n; ++c) {
      double value = at(x, r, c) * reference::mask(dropout, names, r, c);
      if (residual) value += at(residual, r, c);
      row[size_t(c)] = value;
      mean += value / double(n);
    }
    double variance = 0;
    for (double value : row) variance += (value - mean) * (value - mean) / double(n);
    double inverse = 1.0 / std::sqrt(variance + double(epsilon));
    for (int64_t c = 0; c < n; ++c) {
      double value = row[size_t(c)];
      if (s) at(s, r, c) = float(value);
      at(y, r, c) =
          float((value - mean) * inverse * at(gamma, 0, c) + (beta ? at(beta, 0, c) : 0.0f));
      if (rounded) at(rounded, r, c) = at(y, r, c);
    }
    if (stats) {
      at(stats, r, 0) = float(mean);
      at(stats, r, 1) = float(inverse);
    }
  }
}

// With h = (s - mean) * inverse and g = dy * gamma:
//   ds = inverse * (g - mean(g) - h * mean(g * h)).
void ReferenceBackend::add_layer_norm_backward(Tensor dy, Tensor s, Tensor stats, Tensor gamma,
                                               Dropout dropout, RowNames names, Tensor ds,
                                               Tensor dx, Tensor dgamma, Tensor dbeta,
                                               bool accumulate, Tensor sums) {
  dropout = dropout.taken();
  const int64_t n = s.cols;
  check_shape(dy, s.rows, n);
  check_shape(ds, s.rows, n);
  check_shape(stats, s.rows, 2);
  check_shape(gamma, 1, n);
  check_shape(dgamma, 1, n);
  if (dbeta) check_shape(dbeta, 1, n);
  if (dx) check_shape(dx, s.rows, n);
  std::vector<double> gamma_sum(static_cast<size_t>(n), 0.0), beta_sum(static_cast<size_t>(n), 0.0);
  std::vector<double> h(static_cast<size_t>(n)), g(static_cast<size_t>(n));
  std::vector<double> dx_sum(static_cast<size_t>(n), 0.0);
  for (int64_t r = 0; r < s.rows; ++r) {
    double mean = at(stats, r, 0), inverse = at(stats, r, 1);
    double mean_g = 0, mean_gh = 0;
    for (int64_t c = 0; c < n; ++c) {
      size_t i = size_t(c);
      double d = at(dy, r, c);
      h[i] = (at(s, r, c) - mean) * inverse;
      g[i] = d * at(gamma, 0, c);
      mean_g += g[i] / double(n);
      mean_gh += g[i] * h[i] / double(n);
      gamma_sum[i] += d * h[i];
      beta_sum[i] += d;
    }
    for (int64_t c = 0; c < n; ++c) {
      size_t i = size_t(c);
      double value = inverse * (g[i] - mean_g - h[i] * mean_gh);
      at(ds, r, c) = float(value);
      if (dx) value *= reference::mask(dropout, names, r, c);
      if (dx) at(dx, r, c) = float(value);
      dx_sum[i] += value;
    }
  }
  for (int64_t c = 0; c < n; ++c) {
    at(dgamma, 0, c) = float((accumulate ? at(dgamma, 0, c) : 0.0) + gamma_sum[size_t(c)]);
    if (dbeta) at(dbeta, 0, c) = float((accumulate ? at(dbeta, 0, c) : 0.0) + beta_sum[size_t(c)]);
    if (sums) at(sums, 0, c) = float((accumulate ? at(sums, 0, c) : 0.0) + dx_sum[size_t(c)]);
  }
}

}  // namespace finetune
