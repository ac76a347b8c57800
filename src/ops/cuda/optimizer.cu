// The gradient norm's block sums, and AdamW. The update has the CPU's roundings, one by one
// (ops/cpu/optimizer.cpp), and so its bits: every fmaf is one of its MulAdd, and nvcc is told to
// contract nothing else (-fmad=false).
#include "ops/cuda/ops.h"
#include "ops/cuda/pack.h"
#include "ops/cuda/rounded.h"
#include "ops/cuda/warp.h"

namespace finetune::cuda {
namespace {

constexpr int kThreads = 256;

// sums[b] = sum of squares of block b of x, in double (squares of floats are exact there): each
// thread takes every kThreads-th element, then the threads' sums are added in a fixed order.
__global__ void square_sums_kernel(const float* x, int64_t count, int64_t block, double* sums) {
  const int64_t begin = int64_t(blockIdx.x) * block;
  const int64_t end = begin + block < count ? begin + block : count;
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const double v = x[i];
    sum += v * v;
  }
  sum = block_sum<kThreads / kWarp>(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2
__device__ void update_moments(const AdamWStep& f, float g, float& m, float& v) {
  m = fmaf(f.beta1, m, f.rest1 * g);
  v = fmaf(f.beta2, v, f.rest2 * g * g);
}

// p * decay - rate * m / (sqrt(v) * root + epsilon)
__device__ float moved(const AdamWStep& f, float p, float m, float v) {
  const float size = fmaf(sqrtf(v), f.root, f.epsilon);
  return fmaf(-f.rate, m / size, p * f.decay);
}

__device__ void update(const AdamWStep& f, float& p, float g, float& m, float& v) {
  float first = m, second = v;
  update_moments(f, f.scale * g, first, second);
  m = first;
  v = second;
  p = moved(f, p, first, second);
}

// rounded: where the new p goes in bf16 too, may be null
__global__ void adamw_kernel(AdamWStep step, float* p, const float* g, float* m, float* v,
                             bfloat16* rounded, int64_t count) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  update(step, p[i], g[i], m[i], v[i]);
  if (rounded) put(rounded + i, p[i]);
}

// Of the given rows of matrices (V, cols), whose gradient is zero afterwards: block x is a row,
// block y a strip of columns.
__global__ void adamw_rows_kernel(AdamWStep step, RowList rows, float* p, float* g, float* m,
                                  float* v, int64_t cols) {
  const int64_t c = int64_t(blockIdx.y) * kThreads + threadIdx.x;
  if (c >= cols) return;
  const int64_t i = rows.rows[blockIdx.x] * cols + c;
  update(step, p[i], g[i], m[i], v[i]);
  g[i] = 0;
}

// Row rows[x] takes the last missed[x] of `count` steps, in their order, with a zero gradient.
__global__ void catch_up_kernel(const AdamWStep* steps, int64_t count, RowList rows,
                                const int32_t* missed, float* p, float* m, float* v, int64_t cols) {
  const int64_t c = int64_t(blockIdx.y) * kThreads + threadIdx.x;
  if (c >= cols) return;
  const int64_t i = rows.rows[blockIdx.x] * cols + c;
  float parameter = p[i], first = m[i], second = v[i];
  for (int64_t k = count - missed[blockIdx.x]; k < count; ++k) {
    update_moments(steps[k], 0.0f, first, second);
    parameter = moved(steps[k], parameter, first, second);
  }
  p[i] = parameter;
  m[i] = first;
  v[i] = second;
}

void forget(Context& context, Matrix x) {
  context.rounded_weights->forget(x.data, size_t(x.rows * x.cols) * sizeof(float));
}

dim3 row_strips(const RowList& rows, int64_t cols) {
  return dim3(unsigned(rows.count), unsigned(divide_up(cols, kThreads)));
}

}  // namespace

void block_square_sums(Context& context, Matrix x, int64_t block, double* sums) {
  const int64_t blocks = divide_up(x.cols, block);
  const size_t bytes = size_t(blocks) * sizeof(double);
  auto* device = static_cast<double*>(context.scratch(Scratch::squares, bytes));
  launch(context, dim3(unsigned(blocks)), kThreads, square_sums_kernel, x.data, x.cols, block,
         device);
  download(context, sums, device, bytes);
}

void adamw(Context& context, AdamWStep step, Matrix parameter, Matrix gradient, Matrix m,
           Matrix v) {
  const int64_t n = parameter.cols;
  launch(context, dim3(unsigned(divide_up(n, kThreads))), kThreads, adamw_kernel, step,
         parameter.data, gradient.data, m.data, v.data,
         context.rounded_weights->target(parameter.data, n), n);
}

void adamw_rows(Context& context, AdamWStep step, RowList rows, Matrix parameter, Matrix gradient,
                Matrix m, Matrix v) {
  forget(context, parameter);
  launch(context, row_strips(rows, parameter.cols), kThreads, adamw_rows_kernel, step, rows,
         parameter.data, gradient.data, m.data, v.data, parameter.cols);
}

void adamw_catch_up(Context& context, const AdamWStep* steps, int64_t count, RowList rows,
                    const int32_t* missed, Matrix parameter, Matrix m, Matrix v) {
  if (count == 0 || rows.count == 0) return;
  forget(context, parameter);
  const size_t bytes = size_t(count) * sizeof(AdamWStep);
  auto* device = static_cast<AdamWStep*>(context.scratch(Scratch::steps, bytes));
  upload(context, device, steps, bytes);
  launch(context, row_strips(rows, parameter.cols), kThreads, catch_up_kernel, device, count, rows,
         missed, parameter.data, m.data, v.data, parameter.cols);
}

}  // namespace finetune::cuda
