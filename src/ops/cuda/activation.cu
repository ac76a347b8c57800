// y = f(x) and dx = dy * f'(x), formulas of ops/backend.h; each form keeps its relative precision
// where the value is small.
#include "ops/cuda/ops.h"
#include "ops/cuda/warp.h"

namespace finetune::cuda {
namespace {

constexpr float kTanhScale = 0.79788456080286536f;  // sqrt(2 / pi)
constexpr float kTanhCubic = 0.044715f;
constexpr float kBellScale = 0.39894228040143268f;  // 1 / sqrt(2 pi)

__device__ float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}

// 0.5 * (1 + tanh(u)) is sigmoid(2u), which keeps its precision where tanh nears -1.
__device__ float tanh_gate(float x) {
  return sigmoid(x * fmaf(x * x, 2 * kTanhScale * kTanhCubic, 2 * kTanhScale));
}

// exp(-x^2 / 2); the rounding error of x^2 counts as much as x^2 is large.
__device__ float bell(float x) {
  const float square = x * x, rest = fmaf(x, x, -square);
  const float e = expf(-0.5f * square);
  return isfinite(rest) ? fmaf(e, -0.5f * rest, e) : e;
}

template <int kKind>
__device__ float value(float x) {
  if constexpr (kKind == kGelu) return x * normcdff(x);
  if constexpr (kKind == kGeluTanh) return x * tanh_gate(x);
  if constexpr (kKind == kRelu) return x < 0 ? 0.0f : x;  // NaN stays
  if constexpr (kKind == kSilu) return x * sigmoid(x);
  if constexpr (kKind == kTanh) return tanhf(x);
}

template <int kKind>
__device__ float derivative(float x) {
  if constexpr (kKind == kGelu) return fmaf(x * kBellScale, bell(x), normcdff(x));
  if constexpr (kKind == kGeluTanh) {
    const float gate = tanh_gate(x);
    const float slope = fmaf(x * x, 6 * kTanhScale * kTanhCubic, 2 * kTanhScale);
    return fmaf(x * slope * gate, 1.0f - gate, gate);
  }
  if constexpr (kKind == kRelu) return x > 0 ? 1.0f : 0.0f;
  if constexpr (kKind == kSilu) {
    const float s = sigmoid(x);
    return fmaf(x * s, 1.0f - s, s);
  }
  if constexpr (kKind == kTanh) {  // 1 - tanh^2 = 4 e / (1 + e)^2 with e = exp(-2|x|)
    const float e = expf(-2.0f * fabsf(x)), d = 1.0f + e;
    return 4.0f * e / (d * d);
  }
}

template <int kKind>
__global__ void forward_kernel(Matrix x, Matrix y) {
  const int64_t r = blockIdx.x;
  for_columns(x.cols, [=](int64_t c) { y.row(r)[c] = value<kKind>(x.row(r)[c]); });
}

template <int kKind>
__global__ void backward_kernel(Matrix x, Matrix dy, Matrix dx) {
  const int64_t r = blockIdx.x;
  for_columns(x.cols,
              [=](int64_t c) { dx.row(r)[c] = dy.row(r)[c] * derivative<kKind>(x.row(r)[c]); });
}

template <template <int> class Kernels, typename... Matrices>
void launch_kind(Context& context, int kind, Matrix x, Matrices... others) {
  const RowGrid grid = row_grid(x.rows, x.cols);
  auto run = [&](auto kernel) { launch(context, grid.blocks, grid.threads, kernel, x, others...); };
  switch (kind) {
    case kGelu:
      return run(Kernels<kGelu>::kernel);
    case kGeluTanh:
      return run(Kernels<kGeluTanh>::kernel);
    case kRelu:
      return run(Kernels<kRelu>::kernel);
    case kSilu:
      return run(Kernels<kSilu>::kernel);
    case kTanh:
      return run(Kernels<kTanh>::kernel);
  }
  throw Failure("unknown activation");
}

template <int kKind>
struct Forward {
  static constexpr auto kernel = forward_kernel<kKind>;
};
template <int kKind>
struct Backward {
  static constexpr auto kernel = backward_kernel<kKind>;
};

}  // namespace

void activation(Context& context, int kind, Matrix x, Matrix y) {
  launch_kind<Forward>(context, kind, x, y);
}

void activation_backward(Context& context, int kind, Matrix x, Matrix dy, Matrix dx) {
  launch_kind<Backward>(context, kind, x, dy, dx);
}

}  // namespace finetune::cuda
