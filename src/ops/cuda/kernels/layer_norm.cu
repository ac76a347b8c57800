// Layer normalisation of residual + dropout(x), and its gradients: one warp per row. s = residual +
// dropout(x); y = (s - mean) / sqrt(variance + epsilon) * gamma + beta. A warp reads its row once:
// a lane keeps its elements, whose loads are all in flight before the first is needed. Rows of more
// than kMostPacks * 256 columns are read once per pass. Each lane takes the same columns in every
// pass, so operands may share memory.
#include "ops/cuda/kernels/column_sums.h"
#include "ops/cuda/kernels/pack.h"
#include "ops/cuda/kernels/warp.h"
#include "ops/cuda/ops.h"
#include "ops/device_sums.h"

namespace finetune::cuda {
namespace {

constexpr int kWarps = kLayerNormWarps;
constexpr int kThreads = kWarps * kWarp;

constexpr int kMostPacks = 8;
// packs for which a lane has registers for gamma's and beta's sums too
constexpr int kMostSummed = 4;
constexpr int64_t kPackedColumns = kWarp * kPack;  // of a warp's packs
static_assert(kMostSummed * kPackedColumns == kMostSummedColumns);

// A lane's elements of a chunk of a row: kPacks times eight neighbours, one group in each 256
// columns. Loaded and stored at once if kWidth is kPack, one by one if it is 1.
template <int kPacks, int kWidth>
struct Lane {
  static constexpr int64_t kChunk = kPacks * kPackedColumns;

  float values[kPacks][kPack];

  __device__ static int64_t column(int64_t first, int pack) {
    return first + pack * kPackedColumns + lane() * kPack;
  }
  // Calls body(value, pack, place in it) for the elements inside the row
  template <typename Body>
  __device__ void each(int64_t first, int64_t cols, const Body& body) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        if (column(first, p) + (kWidth == 1 ? i : 0) < cols) body(values[p][i], p, i);
      }
    }
  }
  __device__ void load(const float* row, int64_t first, int64_t cols) {
    if constexpr (kWidth == 1) {
      each(first, cols, [=](float& v, int p, int i) { v = row[column(first, p) + i]; });
    } else {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        if (column(first, p) < cols) cuda::load(row + column(first, p), values[p]);
      }
    }
  }
  template <typename T>
  __device__ void store(T* row, int64_t first, int64_t cols) {
    if constexpr (kWidth == 1) {
      each(first, cols, [=](float v, int p, int i) { put(row + column(first, p) + i, v); });
    } else {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        if (column(first, p) < cols) cuda::store(row + column(first, p), values[p]);
      }
    }
  }
  // One Philox block has the bits of eight elements that are 16 apart (core/numeric/philox.h): each
  // lane computes one block, and a word of all lanes covers 16 neighbours in each of two groups of
  // 128 columns.
  __device__ void drop(const Dropout& dropout, const RowNames& names, int64_t row, int64_t first,
                       int64_t cols) {
    if (!dropout.on()) return;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (first + p * kPackedColumns >= cols) continue;
      const uint32_t block = uint32_t(first / 8) + p * kWarp + lane();
      const PhiloxBlock bits =
          philox(dropout.key, {block, names.position[row], names.sample[row], dropout.step});
      unsigned kept = 0;
#pragma unroll
      for (int w = 0; w < 8; ++w) {
        const uint32_t sixteen = (bits[w / 2] >> (16 * (w % 2))) & 0xFFFFu;
        const unsigned all = __ballot_sync(kAllLanes, sixteen >= dropout.threshold);
        if (lane() % 16 / 2 == w) kept = all >> (lane() / 16 * 16 + lane() % 2 * 8);
      }
#pragma unroll
      for (int i = 0; i < kPack; ++i) values[p][i] *= kept >> i & 1 ? dropout.scale : 0.0f;
    }
  }
};

template <int kPacks, int kWidth>
__global__ void __launch_bounds__(kThreads)
    layer_norm_kernel(Matrix x, Matrix residual, Dropout dropout, RowNames names,
                      const float* gamma, const float* beta, float epsilon, Matrix s, Matrix stats,
                      Matrix y, Bf16Matrix rounded) {
  wait_for_earlier_kernels();
  using Values = Lane<kPacks, kWidth>;
  const int64_t r = int64_t(blockIdx.x) * kWarps + warp(), n = x.cols;
  if (r >= x.rows) return;
  dropout = dropout.taken();
  // Whether a row does not fit in registers, so that each pass reads it again.
  const bool again = kPacks == kMostPacks && n > Values::kChunk;
  float* sum_row = s.data ? s.row(r) : again ? y.row(r) : nullptr;

  Values mine = {};
  float sum = 0;
  for (int64_t first = 0; first < n; first += Values::kChunk) {
    Values rest = {};
    mine.load(x.row(r), first, n);
    if (residual.data) rest.load(residual.row(r), first, n);
    mine.drop(dropout, names, r, first, n);
    mine.each(first, n, [&](float& v, int p, int i) {
      v += rest.values[p][i];
      sum += v;
    });
    if (sum_row) mine.store(sum_row, first, n);
  }
  const float mean = warp_sum(sum) / float(n);

  float squares = 0;
  for (int64_t first = 0; first < n; first += Values::kChunk) {
    if (again) mine.load(sum_row, first, n);
    mine.each(first, n, [&](float v, int, int) { squares = fmaf(v - mean, v - mean, squares); });
  }
  // In double, because its error affects every element of the row.
  const float inverse = float(1.0 / sqrt(double(warp_sum(squares)) / double(n) + double(epsilon)));

  for (int64_t first = 0; first < n; first += Values::kChunk) {
    if (again) mine.load(sum_row, first, n);
    Values scale = {}, shift = {};
    scale.load(gamma, first, n);
    if (beta) shift.load(beta, first, n);
    mine.each(first, n, [&](float& v, int p, int i) {
      v = fmaf((v - mean) * inverse, scale.values[p][i], shift.values[p][i]);
    });
    mine.store(y.row(r), first, n);
    if (rounded.data) mine.store(rounded.row(r), first, n);
  }
  if (stats.data && lane() == 0) {
    stats.row(r)[0] = mean;
    stats.row(r)[1] = inverse;
  }
}

// With h = (s - mean) * inverse and g = dy * gamma: ds = inverse * (g - mean(g) - h * mean(g * h));
// dx = ds * dropout factor. parts (blocks, kSums, n): sums of dy * h, of dy and, if kSums is 3, of
// dx (else ds) over each block's rows, `count` per warp, for up to kMostSummed packs.
template <int kPacks, int kWidth, int kSums, typename T>
__global__ void __launch_bounds__(kThreads)
    layer_norm_backward_kernel(Matrix dy, Matrix s, Matrix stats, const float* gamma,
                               Dropout dropout, RowNames names, Matrix ds, MatrixOf<T> dx,
                               int count, float* parts) {
  wait_for_earlier_kernels();
  using Values = Lane<kPacks, kWidth>;
  const int64_t n = s.cols;
  dropout = dropout.taken();
  const bool again = kPacks == kMostPacks && n > Values::kChunk;
  constexpr bool kSumsDx = kSums == 3 && kPacks <= kMostSummed;
  Values gamma_sums = {}, beta_sums = {};
  // In shared memory, for registers are scarce; each lane has its own columns of its warp's row.
  alignas(16) __shared__ float dx_sums[kWarps][kSumsDx ? kPacks * kPackedColumns : kPack];
  if constexpr (kSumsDx) beta_sums.store(dx_sums[warp()], 0, kPacks * kPackedColumns);
  for (int k = 0; k < count; ++k) {
    const int64_t r = (int64_t(blockIdx.x) * count + k) * kWarps + warp();
    if (r >= s.rows) break;
    const float mean = stats.row(r)[0], inverse = stats.row(r)[1];
    Values g = {}, h = {};
    auto load = [&](int64_t first) {
      Values scale = {};
      g.load(dy.row(r), first, n);
      h.load(s.row(r), first, n);
      scale.load(gamma, first, n);
      h.each(first, n, [&](float& v, int p, int i) {
        v = (v - mean) * inverse;
        float& d = g.values[p][i];
        if (kPacks <= kMostSummed) {
          gamma_sums.values[p][i] = fmaf(d, v, gamma_sums.values[p][i]);
          beta_sums.values[p][i] += d;
        }
        d *= scale.values[p][i];
      });
    };
    float sum_g = 0, sum_gh = 0;
    for (int64_t first = 0; first < n; first += Values::kChunk) {
      load(first);
      g.each(first, n, [&](float v, int p, int i) {
        sum_g += v;
        sum_gh = fmaf(v, h.values[p][i], sum_gh);
      });
    }
    const float mean_g = warp_sum(sum_g) / float(n);
    const float mean_gh = warp_sum(sum_gh) / float(n);
    for (int64_t first = 0; first < n; first += Values::kChunk) {
      if (again) load(first);
      g.each(first, n, [&](float& v, int p, int i) {
        v = fmaf(-h.values[p][i], mean_gh, v - mean_g) * inverse;
      });
      g.store(ds.row(r), first, n);
      if (dx.data) {
        g.drop(dropout, names, r, first, n);
        g.store(dx.row(r), first, n);
      }
      if constexpr (kSumsDx) {
        Values sums = {};
        sums.load(dx_sums[warp()], 0, kPacks * kPackedColumns);
        sums.each(0, n, [&](float& v, int p, int i) { v += g.values[p][i]; });
        sums.store(dx_sums[warp()], 0, kPacks * kPackedColumns);
      }
    }
  }
  if (kPacks > kMostSummed) return;
  alignas(16) __shared__ float sums[kWarps][2][kPackedColumns];
  float* part = parts + int64_t(blockIdx.x) * kSums * n;
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    cuda::store(&sums[warp()][0][lane() * kPack], gamma_sums.values[p]);
    cuda::store(&sums[warp()][1][lane() * kPack], beta_sums.values[p]);
    __syncthreads();
    for (int i = int(threadIdx.x); i < kSums * kPackedColumns; i += kThreads) {
      const int64_t which = i / kPackedColumns, c = i % kPackedColumns;
      float sum = 0;
      for (int w = 0; w < kWarps; ++w) {
        sum += which < 2 ? sums[w][which][c] : dx_sums[w][p * kPackedColumns + c];
      }
      if (p * kPackedColumns + c < n) part[which * n + p * kPackedColumns + c] = sum;
    }
    __syncthreads();
  }
}

// Calls run(kPacks, kWidth), as std::integral_constant<int, ...>, for rows of n columns
template <typename Run, typename... Matrices>
void for_lanes(int64_t n, Run&& run, const Matrices&... matrices) {
  const auto width = std::integral_constant<int, kPack>();
  if (!(packs(matrices) && ...)) {
    return run(std::integral_constant<int, kMostPacks>(), std::integral_constant<int, 1>());
  }
  if (n <= 256) return run(std::integral_constant<int, 1>(), width);
  if (n <= 512) return run(std::integral_constant<int, 2>(), width);
  if (n <= 768) return run(std::integral_constant<int, 3>(), width);
  if (n <= 1024) return run(std::integral_constant<int, 4>(), width);
  run(std::integral_constant<int, kMostPacks>(), width);
}

// parts (pieces, 2, n): sums of dy * h and of dy over pieces of kRowsOfASum rows, for more packs.
// Block x is a piece, block y a strip of columns.
__global__ void gamma_beta_parts_kernel(Matrix dy, Matrix s, Matrix stats, float* parts) {
  wait_for_earlier_kernels();
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
  for_lanes(
      x.cols,
      [&](auto packs, auto width) {
        launch(context, dim3(unsigned(divide_up(x.rows, kWarps))), kThreads,
               layer_norm_kernel<packs(), width()>, x, residual, dropout, names, gamma.data,
               beta.data, epsilon, s, stats, y, rounded);
      },
      x, residual, gamma, beta, s, y, rounded);
}

void add_layer_norm_backward(Context& context, Matrix dy, Matrix s, Matrix stats, Matrix gamma,
                             Dropout dropout, RowNames names, Matrix ds, AnyMatrix dx,
                             Matrix dgamma, Matrix dbeta, bool accumulate, Matrix sums) {
  const int64_t n = s.cols;
  if (dx.data == ds.data) dx = {};
  float* parts = nullptr;
  int64_t pieces = 0, rows_of_parts = 2;
  for_type(dx.bf16, [&](auto element) {
    using T = decltype(element);
    for_lanes(
        n,
        [&](auto packs, auto width) {
          rows_of_parts = packs() <= kMostSummed && sums.data ? 3 : 2;
          const int count = packs() <= kMostSummed ? int(layer_norm_rows(s.rows)) : 1;
          const int64_t blocks = divide_up(s.rows, count * kWarps);
          pieces = packs() <= kMostSummed ? blocks : divide_up(s.rows, kRowsOfASum);
          // The most that any smaller number of rows needs: graphs are lost when memory moves.
          parts = context.scratch_floats(Scratch::sums, sum_floats(s.rows, n, 0));
          if (packs() > kMostSummed) {  // first, because ds may overwrite dy
            launch(context, dim3(unsigned(pieces), unsigned(divide_up(n, kThreads))), kThreads,
                   gamma_beta_parts_kernel, dy, s, stats, parts);
          }
          const auto kernel = rows_of_parts == 3
                                  ? layer_norm_backward_kernel<packs(), width(), 3, T>
                                  : layer_norm_backward_kernel<packs(), width(), 2, T>;
          launch(context, dim3(unsigned(blocks)), kThreads, kernel, dy, s, stats, gamma.data,
                 dropout, names, ds, dx.as<T>(), count, parts);
        },
        dy, s, gamma, ds, dx.as<T>());
  });
  add_parts(context, parts, pieces, rows_of_parts * n,
            {n, accumulate, dgamma.data, dbeta.data, sums.data});
  if (!sums.data || rows_of_parts == 3) return;
  const AnyMatrix of_ds = {ds.data, ds.rows, ds.cols, ds.stride, false};
  column_sums(context, dx.data ? dx : of_ds, sums.data, accumulate);
}

}  // namespace finetune::cuda
