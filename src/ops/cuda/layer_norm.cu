// s = residual + dropout(x); y = (s - mean) / sqrt(variance + epsilon) * gamma + beta, and its
// gradients. One warp a row; each lane walks the same columns in every pass over it, so what it has
// written it reads again without waiting for others, and operands may share memory.
#include "ops/cuda/column_sums.h"
#include "ops/cuda/ops.h"
#include "ops/cuda/warp.h"

namespace finetune::cuda {
namespace {

constexpr int kWarps = 4;  // a row each
constexpr int kThreads = kWarps * kWarp;

__global__ void layer_norm_kernel(Matrix x, Matrix residual, Dropout dropout, RowNames names,
                                  const float* gamma, const float* beta, float epsilon, Matrix s,
                                  Matrix stats, Matrix y) {
  const int64_t r = int64_t(blockIdx.x) * kWarps + warp(), n = x.cols;
  if (r >= x.rows) return;
  const float* from = x.row(r);
  const float* rest = residual.data ? residual.row(r) : nullptr;
  float* out = y.row(r);
  float* sum_row = s.data ? s.row(r) : out;

  float sum = 0;
  for_dropout_columns(dropout, names, r, n, [&](int64_t c, float factor) {
    const float v = from[c] * factor + (rest ? rest[c] : 0.0f);
    sum_row[c] = v;
    sum += v;
  });
  const float mean = warp_sum(sum) / float(n);

  float squares = 0;
  for_dropout_columns(Dropout{}, names, r, n, [&](int64_t c, float) {
    const float v = sum_row[c] - mean;
    squares = fmaf(v, v, squares);
  });
  // In double: its error is in every element of the row.
  const float inverse = float(1.0 / sqrt(double(warp_sum(squares)) / double(n) + double(epsilon)));

  for_dropout_columns(Dropout{}, names, r, n, [&](int64_t c, float) {
    out[c] = fmaf((sum_row[c] - mean) * inverse, gamma[c], beta[c]);
  });
  if (stats.data && lane() == 0) {
    stats.row(r)[0] = mean;
    stats.row(r)[1] = inverse;
  }
}

// With h = (s - mean) * inverse and g = dy * gamma:
//   ds = inverse * (g - mean(g) - h * mean(g * h)); dx = ds * factor of dropout.
__global__ void layer_norm_backward_kernel(Matrix dy, Matrix s, Matrix stats, const float* gamma,
                                           Dropout dropout, RowNames names, Matrix ds, Matrix dx) {
  const int64_t r = int64_t(blockIdx.x) * kWarps + warp(), n = s.cols;
  if (r >= s.rows) return;
  const float mean = stats.row(r)[0], inverse = stats.row(r)[1];
  const float* gradient = dy.row(r);
  const float* value = s.row(r);
  float sum_g = 0, sum_gh = 0;
  for_dropout_columns(Dropout{}, names, r, n, [&](int64_t c, float) {
    const float g = gradient[c] * gamma[c];
    sum_g += g;
    sum_gh = fmaf(g, (value[c] - mean) * inverse, sum_gh);
  });
  const float mean_g = warp_sum(sum_g) / float(n);
  const float mean_gh = warp_sum(sum_gh) / float(n);
  for_dropout_columns(dropout, names, r, n, [&](int64_t c, float factor) {
    const float h = (value[c] - mean) * inverse;
    const float v = fmaf(-h, mean_gh, gradient[c] * gamma[c] - mean_g) * inverse;
    ds.row(r)[c] = v;
    if (dx.data) dx.row(r)[c] = v * factor;
  });
}

// parts (pieces, 2, n): sums of dy * h and of dy over pieces of kRowsOfASum rows. Block x is a
// piece, block y a strip of columns.
__global__ void gamma_beta_parts_kernel(Matrix dy, Matrix s, Matrix stats, float* parts) {
  const int64_t n = s.cols, c = int64_t(blockIdx.y) * kThreads + threadIdx.x;
  if (c >= n) return;
  const int64_t begin = int64_t(blockIdx.x) * kRowsOfASum;
  const int64_t end = begin + kRowsOfASum < s.rows ? begin + kRowsOfASum : s.rows;
  float gamma_sum = 0, beta_sum = 0;
  for (int64_t r = begin; r < end; ++r) {
    const float d = dy.row(r)[c];
    gamma_sum = fmaf(d, (s.row(r)[c] - stats.row(r)[0]) * stats.row(r)[1], gamma_sum);
    beta_sum += d;
  }
  parts[int64_t(blockIdx.x) * 2 * n + c] = gamma_sum;
  parts[int64_t(blockIdx.x) * 2 * n + n + c] = beta_sum;
}

// dgamma += column sums of parts (pieces, 2, n) [.][0], dbeta += those of [.][1]
__global__ void add_gamma_beta_kernel(const float* parts, int64_t pieces, int64_t n, float* dgamma,
                                      float* dbeta) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= 2 * n) return;
  float sum = 0;
  for (int64_t piece = 0; piece < pieces; ++piece) sum += parts[piece * 2 * n + i];
  (i < n ? dgamma[i] : dbeta[i - n]) += sum;
}

}  // namespace

void add_layer_norm(Context& context, Matrix x, Matrix residual, Dropout dropout, RowNames names,
                    Matrix gamma, Matrix beta, float epsilon, Matrix s, Matrix stats, Matrix y) {
  launch(context, dim3(unsigned(divide_up(x.rows, kWarps))), kThreads, layer_norm_kernel, x,
         residual, dropout, names, gamma.data, beta.data, epsilon, s, stats, y);
}

void add_layer_norm_backward(Context& context, Matrix dy, Matrix s, Matrix stats, Matrix gamma,
                             Dropout dropout, RowNames names, Matrix ds, Matrix dx, Matrix dgamma,
                             Matrix dbeta) {
  if (s.rows == 0) return;
  // First what reads dy as it is: ds may be dy.
  const int64_t n = s.cols, pieces = divide_up(s.rows, kRowsOfASum);
  float* parts = context.scratch_floats(Scratch::sums, pieces * 2 * n);
  launch(context, dim3(unsigned(pieces), unsigned(divide_up(n, kThreads))), kThreads,
         gamma_beta_parts_kernel, dy, s, stats, parts);
  launch(context, dim3(unsigned(divide_up(2 * n, kThreads))), kThreads, add_gamma_beta_kernel,
         parts, pieces, n, dgamma.data, dbeta.data);
  if (dx.data == ds.data) dx = Matrix{};
  launch(context, dim3(unsigned(divide_up(s.rows, kWarps))), kThreads, layer_norm_backward_kernel,
         dy, s, stats, gamma.data, dropout, names, ds, dx);
}

}  // namespace finetune::cuda
