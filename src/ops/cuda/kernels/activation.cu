// Activation kernels: y = f(x) and dx = dy * f'(x), with the formulas of ops/backend.h. Each form
// keeps its relative precision for small values.
#include "ops/cuda/kernels/approximate.h"
#include "ops/cuda/kernels/column_sums.h"
#include "ops/cuda/kernels/pack.h"
#include "ops/cuda/kernels/warp.h"
#include "ops/cuda/ops.h"
#include "ops/device_sums.h"

namespace finetune::cuda {
namespace {

constexpr float kTanhScale = 0.79788456080286536f;  // sqrt(2 / pi)
constexpr float kTanhCubic = 0.044715f;
constexpr float kLog2E = 1.4426950408889634f;
constexpr float kBellScale = 0.39894228040143268f;  // 1 / sqrt(2 pi)

// Precision by the tensors' type T: full for fp32, as needed for rounding for bf16.
template <typename T>
constexpr bool kRounded = std::is_same_v<T, bfloat16>;

template <typename T>
__device__ float exponential(float x) {
  if constexpr (kRounded<T>) return approximate_exp2(x * kLog2E);
  return expf(x);
}

template <typename T>
__device__ float sigmoid(float x) {
  if constexpr (kRounded<T>) return approximate_reciprocal(1.0f + exponential<T>(-x));
  return 1.0f / (1.0f + exponential<T>(-x));
}

// 0.5 * (1 + tanh(u)) is sigmoid(2u), which stays precise when tanh is near -1.
template <typename T>
__device__ float tanh_gate(float x) {
  return sigmoid<T>(x * fmaf(x * x, 2 * kTanhScale * kTanhCubic, 2 * kTanhScale));
}

// exp(-x^2 / 2); corrects the rounding error of x^2, which matters for large x.
__device__ float bell(float x) {
  const float square = x * x, rest = fmaf(x, x, -square);
  const float e = expf(-0.5f * square);
  return isfinite(rest) ? fmaf(e, -0.5f * rest, e) : e;
}

// The normal distribution's tail for x in bf16: Phi(-|x|) = bell * ratio, with bell = exp(-x^2 / 2)
// and ratio = t P(t), t = 1 / (1 + 0.3075 |x|). P minimises the relative error, 4e-6, for |x| up to
// 13.5, where bell underflows in float.
struct Tail {
  float bell, ratio;
};
__device__ Tail tail_of(float x) {
  const float t = approximate_reciprocal(fmaf(fabsf(x), 0.3075f, 1.0f));
  float p = -0.07584727f;
  p = fmaf(p, t, 0.19207598f);
  p = fmaf(p, t, 0.0049361331f);
  p = fmaf(p, t, 0.13743417f);
  p = fmaf(p, t, 0.11845800f);
  p = fmaf(p, t, 0.12294148f);
  return {approximate_exp2(x * x * (-0.5f * kLog2E)), p * t};  // x * x is exact
}

template <typename T>
__device__ float gelu(float x) {
  if constexpr (kRounded<T>) {
    const Tail tail = tail_of(x);
    const float rest = tail.bell * tail.ratio;
    return x * (x > 0 ? 1.0f - rest : rest);
  }
  return x * normcdff(x);
}

// Phi(x) + x phi(x)
template <typename T>
__device__ float gelu_derivative(float x) {
  if constexpr (kRounded<T>) {
    const Tail tail = tail_of(x);
    const float beyond = tail.bell * fmaf(fabsf(x), kBellScale, -tail.ratio);
    return x > 0 ? 1.0f + beyond : -beyond;
  }
  return fmaf(x * kBellScale, bell(x), normcdff(x));
}

template <Activation kFunction, typename T>
__device__ float value(float x) {
  if constexpr (kFunction == Activation::gelu) return gelu<T>(x);
  if constexpr (kFunction == Activation::gelu_tanh) return x * tanh_gate<T>(x);
  if constexpr (kFunction == Activation::relu) return x < 0 ? 0.0f : x;  // keeps NaN
  if constexpr (kFunction == Activation::silu) return x * sigmoid<T>(x);
  if constexpr (kFunction == Activation::tanh) return tanhf(x);
}

template <Activation kFunction, typename T>
__device__ float derivative(float x) {
  if constexpr (kFunction == Activation::gelu) return gelu_derivative<T>(x);
  if constexpr (kFunction == Activation::gelu_tanh) {
    const float gate = tanh_gate<T>(x);
    const float slope = fmaf(x * x, 6 * kTanhScale * kTanhCubic, 2 * kTanhScale);
    return fmaf(x * slope * gate, 1.0f - gate, gate);
  }
  if constexpr (kFunction == Activation::relu) return x > 0 ? 1.0f : 0.0f;
  if constexpr (kFunction == Activation::silu) {
    const float s = sigmoid<T>(x);
    return fmaf(x * s, 1.0f - s, s);
  }
  if constexpr (kFunction ==
                Activation::tanh) {  // 1 - tanh^2 = 4 e / (1 + e)^2 with e = exp(-2|x|)
    const float e = expf(-2.0f * fabsf(x)), d = 1.0f + e;
    return 4.0f * e / (d * d);
  }
}

template <Activation kFunction, int kWidth, typename T>
__global__ void forward_kernel(MatrixOf<T> x, MatrixOf<T> y) {
  wait_for_earlier_kernels();
  const int64_t r = blockIdx.x;
  for_columns(x.cols / kWidth, [=](int64_t i) {
    float values[kWidth];
    load(x.row(r) + i * kWidth, values);
#pragma unroll
    for (float& v : values) v = value<kFunction, T>(v);
    store(y.row(r) + i * kWidth, values);
  });
}

template <Activation kFunction, int kWidth, typename T>
__global__ void backward_kernel(MatrixOf<T> x, MatrixOf<T> dy, MatrixOf<T> dx, MatrixOf<T> y) {
  wait_for_earlier_kernels();
  const int64_t r = blockIdx.x;
  for_columns(x.cols / kWidth, [=](int64_t i) {
    float values[kWidth], gradients[kWidth];
    load(x.row(r) + i * kWidth, values);
    load(dy.row(r) + i * kWidth, gradients);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) gradients[k] *= derivative<kFunction, T>(values[k]);
    store(dx.row(r) + i * kWidth, gradients);
    if (!y.data) return;
#pragma unroll
    for (float& v : values) v = value<kFunction, T>(v);
    store(y.row(r) + i * kWidth, values);
  });
}

// The same, and parts (pieces, cols): sums of dx, before it is rounded, over a piece's rows, kCount
// per warp. Block x is a piece, block y a strip of columns, a pack per lane. A warp's loads are all
// in flight together.
template <Activation kFunction, int kCount, typename T>
__global__ void __launch_bounds__(kActivationWarps* kWarp)
    backward_sums_kernel(MatrixOf<T> x, MatrixOf<T> dy, MatrixOf<T> dx, MatrixOf<T> y,
                         float* parts) {
  wait_for_earlier_kernels();
  constexpr int kWarps = int(kActivationWarps), kStrip = kWarp * kPack;
  alignas(16) __shared__ float warps[kWarps][kStrip];
  const int64_t first = int64_t(blockIdx.y) * kStrip, c = first + lane() * kPack;
  const int64_t begin = int64_t(blockIdx.x) * kCount * kWarps + warp();
  float values[kCount][kPack] = {}, gradients[kCount][kPack] = {}, sums[kPack] = {};
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    const int64_t r = begin + k * kWarps;
    if (r >= x.rows || c >= x.cols) continue;
    load(x.row(r) + c, values[k]);
    load(dy.row(r) + c, gradients[k]);
  }
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    const int64_t r = begin + k * kWarps;
    if (r >= x.rows || c >= x.cols) continue;
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      gradients[k][i] *= derivative<kFunction, T>(values[k][i]);
      sums[i] += gradients[k][i];
    }
    store(dx.row(r) + c, gradients[k]);
    if (!y.data) continue;
#pragma unroll
    for (float& v : values[k]) v = value<kFunction, T>(v);
    store(y.row(r) + c, values[k]);
  }
  store(&warps[warp()][lane() * kPack], sums);
  __syncthreads();
  const int64_t place = first + threadIdx.x;  // a column per thread
  if (place >= x.cols) return;
  float sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += warps[w][threadIdx.x];
  parts[int64_t(blockIdx.x) * x.cols + place] = sum;
}
static_assert(kActivationWarps == kPack);  // as many threads as columns of a strip

// The dropout factor of element `column` of y's row r.
__device__ float gate_factor(const Dropout& dropout, const RowNames& names, int64_t r,
                             int64_t column) {
  if (!dropout.on()) return 1.0f;
  const uint32_t bits =
      dropout_bits(dropout.key, names.position[r], names.sample[r], dropout.step, uint32_t(column));
  return bits >= dropout.threshold ? dropout.scale : 0.0f;
}

template <Activation kFunction, typename T>
__global__ void gated_kernel(MatrixOf<T> x, Dropout dropout, RowNames names, int64_t first_column,
                             MatrixOf<T> y) {
  wait_for_earlier_kernels();
  dropout = dropout.taken();
  const int64_t r = blockIdx.x, n = y.cols;
  for_columns(n, [=](int64_t c) {
    const float u = as_float(x.row(r)[c]), g = as_float(x.row(r)[n + c]);
    const float kept = gate_factor(dropout, names, r, first_column + c);
    put(y.row(r) + c, value<kFunction, T>(u) * g * kept);
  });
}

// dx may be x, and y may be dy: a thread reads its elements before it writes them.
template <Activation kFunction, typename T>
__global__ void gated_backward_kernel(MatrixOf<T> x, MatrixOf<T> dy, Dropout dropout,
                                      RowNames names, int64_t first_column, MatrixOf<T> dx,
                                      MatrixOf<T> y) {
  wait_for_earlier_kernels();
  dropout = dropout.taken();
  const int64_t r = blockIdx.x, n = y.cols;
  for_columns(n, [=](int64_t c) {
    const float u = as_float(x.row(r)[c]), g = as_float(x.row(r)[n + c]);
    const float kept = gate_factor(dropout, names, r, first_column + c);
    const float f = value<kFunction, T>(u), gradient = as_float(dy.row(r)[c]) * kept;
    put(dx.row(r) + c, gradient * g * derivative<kFunction, T>(u));
    put(dx.row(r) + n + c, gradient * f);
    put(y.row(r) + c, f * g * kept);
  });
}

// run(std::integral_constant<Activation, f>())
template <typename Run>
void for_activation(Activation f, Run&& run) {
  switch (f) {
    case Activation::gelu:
      return run(std::integral_constant<Activation, Activation::gelu>());
    case Activation::gelu_tanh:
      return run(std::integral_constant<Activation, Activation::gelu_tanh>());
    case Activation::relu:
      return run(std::integral_constant<Activation, Activation::relu>());
    case Activation::silu:
      return run(std::integral_constant<Activation, Activation::silu>());
    case Activation::tanh:
      return run(std::integral_constant<Activation, Activation::tanh>());
  }
  throw Failure("unknown activation");
}

}  // namespace

void activation(Context& context, Activation f, AnyMatrix x, AnyMatrix y) {
  for_type(x.bf16, [&](auto element) {
    using T = decltype(element);
    const auto from = x.as<T>(), to = y.as<T>();
    for_width(
        [&](auto width) {
          const RowGrid grid = row_grid(x.rows, x.cols / width());
          for_activation(f, [&](auto which) {
            launch(context, grid.blocks, grid.threads, forward_kernel<which(), width(), T>, from,
                   to);
          });
        },
        from, to);
  });
}

void gated_activation(Context& context, Activation f, AnyMatrix x, Dropout dropout, RowNames names,
                      int64_t first_column, AnyMatrix y) {
  const RowGrid grid = row_grid(y.rows, y.cols);
  for_type(x.bf16, [&](auto element) {
    using T = decltype(element);
    for_activation(f, [&](auto which) {
      launch(context, grid.blocks, grid.threads, gated_kernel<which(), T>, x.as<T>(), dropout,
             names, first_column, y.as<T>());
    });
  });
}

void gated_activation_backward(Context& context, Activation f, AnyMatrix x, AnyMatrix dy,
                               Dropout dropout, RowNames names, int64_t first_column, AnyMatrix dx,
                               AnyMatrix y) {
  const RowGrid grid = row_grid(y.rows, y.cols);
  for_type(x.bf16, [&](auto element) {
    using T = decltype(element);
    for_activation(f, [&](auto which) {
      launch(context, grid.blocks, grid.threads, gated_backward_kernel<which(), T>, x.as<T>(),
             dy.as<T>(), dropout, names, first_column, dx.as<T>(), y.as<T>());
    });
  });
}

void activation_backward(Context& context, Activation f, AnyMatrix x, AnyMatrix dy, AnyMatrix dx,
                         AnyMatrix y, Matrix sums, bool accumulate) {
  for_type(x.bf16, [&](auto element) {
    using T = decltype(element);
    const auto from = x.as<T>(), gradient = dy.as<T>(), to = dx.as<T>(), again = y.as<T>();
    if (sums.data && packs(from) && packs(gradient) && packs(to) && packs(again)) {
      const int64_t count = activation_rows(x.rows);
      const int64_t pieces = divide_up(x.rows, count * kActivationWarps);
      // The most that any smaller number of rows needs: graphs are lost when memory moves.
      float* parts = context.scratch_floats(Scratch::sums, sum_floats(x.rows, 0, x.cols));
      const dim3 blocks(unsigned(pieces), unsigned(divide_up(x.cols, kWarp * kPack)));
      for_activation(f, [&](auto which) {
        const auto kernel =
            count == 1 ? backward_sums_kernel<which(), 1, T> : backward_sums_kernel<which(), 4, T>;
        launch(context, blocks, int(kActivationWarps) * kWarp, kernel, from, gradient, to, again,
               parts);
      });
      return add_parts(context, parts, pieces, x.cols, {x.cols, accumulate, sums.data});
    }
    for_width(
        [&](auto width) {
          const RowGrid grid = row_grid(x.rows, x.cols / width());
          for_activation(f, [&](auto which) {
            launch(context, grid.blocks, grid.threads, backward_kernel<which(), width(), T>, from,
                   gradient, to, again);
          });
        },
        from, gradient, to, again);
    if (sums.data) column_sums(context, dx, sums.data, accumulate);
  });
}

}  // namespace finetune::cuda
