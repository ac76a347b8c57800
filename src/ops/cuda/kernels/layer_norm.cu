// Layer normalisation of residual + dropout(x), and its gradients: one warp a row.
// s = residual + dropout(x); y = (s - mean) / sqrt(variance + epsilon) * gamma + beta. A warp reads
// its row once: a lane keeps its elements, all of which are on their way from memory before the
// first is needed. Rows of more than kMostPairs * 256 columns are read once for each pass over
// them. Each lane takes the same columns in every pass, so operands may share memory.
#include "ops/cuda/kernels/column_sums.h"
#include "ops/cuda/ops.h"
#include "ops/cuda/kernels/pack.h"
#include "ops/cuda/kernels/warp.h"

namespace finetune::cuda {
namespace {

constexpr int kWarps = 4;  // a row each
constexpr int kThreads = kWarps * kWarp;

constexpr int kMostPairs = 8;

// A lane's elements of a chunk of a row: kPairs times eight, of one of two groups of 128 columns
// those that lie 16 apart, for which one Philox block has the bits (core/numeric/philox.h).
template <int kPairs>
struct Lane {
  static constexpr int kCount = kPairs * 8;
  static constexpr int64_t kChunk = kPairs * 256;

  float values[kCount];

  __device__ static int64_t column(int64_t first, int i) {
    return first + (i / 8 * 2 + lane() / 16) * 128 + i % 8 * 16 + lane() % 16;
  }
  // body(value, column) for those that the row has
  template <typename Body>
  __device__ void each(int64_t first, int64_t cols, const Body& body) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int64_t c = column(first, i);
      if (c < cols) body(values[i], c);
    }
  }
  __device__ void load(const float* row, int64_t first, int64_t cols) {
    each(first, cols, [=](float& v, int64_t c) { v = row[c]; });
  }
  __device__ void drop(const Dropout& dropout, const RowNames& names, int64_t row, int64_t first,
                       int64_t cols) {
    if (!dropout.on()) return;
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
      const int64_t group = first / 128 + p * 2 + lane() / 16;
      if (group * 128 >= cols) continue;
      const uint32_t block = uint32_t(group) * 16 + uint32_t(lane()) % 16;
      const PhiloxBlock bits =
          philox(dropout.key, {block, names.position[row], names.sample[row], dropout.step});
#pragma unroll
      for (int w = 0; w < 8; ++w) {
        const uint32_t sixteen = (bits[w / 2] >> (16 * (w % 2))) & 0xFFFFu;
        values[p * 8 + w] *= sixteen >= dropout.threshold ? dropout.scale : 0.0f;
      }
    }
  }
};

template <int kPairs>
__global__ void layer_norm_kernel(Matrix x, Matrix residual, Dropout dropout, RowNames names,
                                  const float* gamma, const float* beta, float epsilon, Matrix s,
                                  Matrix stats, Matrix y, Bf16Matrix rounded) {
  constexpr int64_t kChunk = Lane<kPairs>::kChunk;
  const int64_t r = int64_t(blockIdx.x) * kWarps + warp(), n = x.cols;
  if (r >= x.rows) return;
  dropout = dropout.taken();
  const bool again = n > kChunk;  // what one pass has read is not there for the next
  float* sum_row = s.data ? s.row(r) : again ? y.row(r) : nullptr;

  Lane<kPairs> mine = {};
  float sum = 0;
  for (int64_t first = 0; first < n; first += kChunk) {
    Lane<kPairs> rest = {};
    mine.load(x.row(r), first, n);
    if (residual.data) rest.load(residual.row(r), first, n);
    mine.drop(dropout, names, r, first, n);
#pragma unroll
    for (int i = 0; i < mine.kCount; ++i) mine.values[i] += rest.values[i];
    mine.each(first, n, [&](float v, int64_t c) {
      if (sum_row) sum_row[c] = v;
      sum += v;
    });
  }
  const float mean = warp_sum(sum) / float(n);

  float squares = 0;
  for (int64_t first = 0; first < n; first += kChunk) {
    if (again) mine.load(sum_row, first, n);
    mine.each(first, n, [&](float v, int64_t) { squares = fmaf(v - mean, v - mean, squares); });
  }
  // In double: its error is in every element of the row.
  const float inverse = float(1.0 / sqrt(double(warp_sum(squares)) / double(n) + double(epsilon)));

  for (int64_t first = 0; first < n; first += kChunk) {
    if (again) mine.load(sum_row, first, n);
    mine.each(first, n, [&](float& v, int64_t c) {
      v = fmaf((v - mean) * inverse, gamma[c], beta[c]);
      y.row(r)[c] = v;
      if (rounded.data) put(rounded.row(r) + c, v);
    });
  }
  if (stats.data && lane() == 0) {
    stats.row(r)[0] = mean;
    stats.row(r)[1] = inverse;
  }
}

// With h = (s - mean) * inverse and g = dy * gamma:
//   ds = inverse * (g - mean(g) - h * mean(g * h)); dx = ds * factor of dropout.
template <int kPairs, typename T>
__global__ void layer_norm_backward_kernel(Matrix dy, Matrix s, Matrix stats, const float* gamma,
                                           Dropout dropout, RowNames names, Matrix ds,
                                           MatrixOf<T> dx) {
  constexpr int64_t kChunk = Lane<kPairs>::kChunk;
  const int64_t r = int64_t(blockIdx.x) * kWarps + warp(), n = s.cols;
  if (r >= s.rows) return;
  dropout = dropout.taken();
  const bool again = n > kChunk;
  const float mean = stats.row(r)[0], inverse = stats.row(r)[1];
  Lane<kPairs> g = {}, h = {};
  auto load = [&](int64_t first) {
    g.load(dy.row(r), first, n);
    h.load(s.row(r), first, n);
    g.each(first, n, [&](float& v, int64_t c) { v *= gamma[c]; });
    h.each(first, n, [&](float& v, int64_t) { v = (v - mean) * inverse; });
  };
  float sum_g = 0, sum_gh = 0;
  for (int64_t first = 0; first < n; first += kChunk) {
    load(first);
#pragma unroll
    for (int i = 0; i < g.kCount; ++i) {
      if (g.column(first, i) >= n) continue;
      sum_g += g.values[i];
      sum_gh = fmaf(g.values[i], h.values[i], sum_gh);
    }
  }
  const float mean_g = warp_sum(sum_g) / float(n);
  const float mean_gh = warp_sum(sum_gh) / float(n);
  for (int64_t first = 0; first < n; first += kChunk) {
    if (again) load(first);
#pragma unroll
    for (int i = 0; i < g.kCount; ++i) {
      g.values[i] = fmaf(-h.values[i], mean_gh, g.values[i] - mean_g) * inverse;
    }
    g.each(first, n, [&](float v, int64_t c) { ds.row(r)[c] = v; });
    if (!dx.data) continue;
    g.drop(dropout, names, r, first, n);
    g.each(first, n, [&](float v, int64_t c) { put(dx.row(r) + c, v); });
  }
}

// run(std::integral_constant<int, kPairs>()) for rows of n columns
template <typename Run>
void for_pairs(int64_t n, Run&& run) {
  if (n <= 256) return run(std::integral_constant<int, 1>());
  if (n <= 512) return run(std::integral_constant<int, 2>());
  if (n <= 768) return run(std::integral_constant<int, 3>());
  if (n <= 1024) return run(std::integral_constant<int, 4>());
  run(std::integral_constant<int, kMostPairs>());
}

// parts (pieces, 2, n): sums of dy * h and of dy over pieces of kRowsOfASum rows. Block x is a
// piece, block y a strip of columns.
__global__ void gamma_beta_parts_kernel(Matrix dy, Matrix s, Matrix stats, float* parts) {
  const int64_t n = s.cols, c = int64_t(blockIdx.y) * kThreads + threadIdx.x;
  if (c >= n) return;
  const int64_t begin = int64_t(blockIdx.x) * kRowsOfASum;
  const int64_t end = begin + kRowsOfASum < s.rows ? begin + kRowsOfASum : s.rows;
  float gamma_sum = 0, beta_sum = 0;
#pragma unroll 8
  for (int64_t r = begin; r < end; ++r) {
    const float d = dy.row(r)[c];
    gamma_sum = fmaf(d, (s.row(r)[c] - stats.row(r)[0]) * stats.row(r)[1], gamma_sum);
    beta_sum += d;
  }
  parts[int64_t(blockIdx.x) * 2 * n + c] = gamma_sum;
  parts[int64_t(blockIdx.x) * 2 * n + n + c] = beta_sum;
}

}  // namespace

void add_layer_norm(Context& context, Matrix x, Matrix residual, Dropout dropout, RowNames names,
                    Matrix gamma, Matrix beta, float epsilon, Matrix s, Matrix stats, Matrix y,
                    Bf16Matrix rounded) {
  for_pairs(x.cols, [&](auto pairs) {
    launch(context, dim3(unsigned(divide_up(x.rows, kWarps))), kThreads, layer_norm_kernel<pairs()>,
           x, residual, dropout, names, gamma.data, beta.data, epsilon, s, stats, y, rounded);
  });
}

void add_layer_norm_backward(Context& context, Matrix dy, Matrix s, Matrix stats, Matrix gamma,
                             Dropout dropout, RowNames names, Matrix ds, AnyMatrix dx,
                             Matrix dgamma, Matrix dbeta, bool accumulate) {
  // First what reads dy as it is: ds may be dy.
  const int64_t n = s.cols, pieces = divide_up(s.rows, kRowsOfASum);
  float* parts = context.scratch_floats(Scratch::sums, pieces * 2 * n);
  launch(context, dim3(unsigned(pieces), unsigned(divide_up(n, kThreads))), kThreads,
         gamma_beta_parts_kernel, dy, s, stats, parts);
  add_parts(context, parts, pieces, 2 * n, {dgamma.data, n, dbeta.data, accumulate});
  if (dx.data == ds.data) dx = {};
  for_type(dx.bf16, [&](auto element) {
    using T = decltype(element);
    for_pairs(n, [&](auto pairs) {
      launch(context, dim3(unsigned(divide_up(s.rows, kWarps))), kThreads,
             layer_norm_backward_kernel<pairs(), T>, dy, s, stats, gamma.data, dropout, names, ds,
             dx.as<T>());
    });
  });
}

}  // namespace finetune::cuda
