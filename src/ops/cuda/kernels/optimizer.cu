// The gradient norm's block sums, the step's outcome, and AdamW. The update rounds exactly as on
// the CPU (ops/cpu/kernels/optimizer.cpp) and so has the same bits, except for denormals, which are
// zero there: every fmaf corresponds to a MulAdd, and nvcc may contract nothing else (-fmad=false).
#include <vector>

#include "core/numeric/tree_sum.h"
#include "ops/cuda/kernels/pack.h"
#include "ops/cuda/kernels/rounded.h"
#include "ops/cuda/kernels/warp.h"
#include "ops/cuda/module/second_stream.h"
#include "ops/cuda/ops.h"

namespace finetune::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTreeThreads = 1024;
constexpr int64_t kStepsAtOnce = 512;
constexpr int kFours = 2;                           // of neighbours that a lane updates
constexpr int64_t kWarpFours = kFour * kWarp;      // of all lanes, side by side
constexpr int64_t kRow = kFours * kWarpFours;      // elements updated by one warp
constexpr int64_t kPiece = kRow * kThreads / kWarp;  // by one block

// A part prepared for the launch.
struct LaunchedPart : AdamWPart {
  int64_t first_block;
  bfloat16* rounded;  // where to write the new weights in bf16 as well; may be null
};

// sums[b] = sum of squares of block b of x, in double (squares of floats are exact there): each
// thread takes every kThreads-th element, then the threads' sums are added in a fixed order.
__global__ void square_sums_kernel(const float* x, int64_t count, int64_t block, double* sums) {
  wait_for_earlier_kernels();
  const int64_t begin = int64_t(blockIdx.x) * block;
  const int64_t end = begin + block < count ? begin + block : count;
  double sum = 0;
#pragma unroll 8
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const double v = x[i];
    sum += v * v;
  }
  sum = block_sum<kThreads / kWarp>(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// One block. The losses are added in order: one thread adds what all have loaded.
__global__ void add_losses_kernel(const float* losses, const float* weights, int64_t count,
                                  bool accumulate, double* sum) {
  wait_for_earlier_kernels();
  __shared__ double piece[kThreads];
  double total = accumulate && threadIdx.x == 0 ? *sum : 0.0;
  for (int64_t first = 0; first < count; first += kThreads) {
    const int64_t i = first + threadIdx.x;
    if (i < count) piece[threadIdx.x] = (weights ? double(weights[i]) : 1.0) * double(losses[i]);
    __syncthreads();
    if (threadIdx.x == 0) {
      const int64_t here = count - first < kThreads ? count - first : kThreads;
      for (int64_t k = 0; k < here; ++k) total += piece[k];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) *sum = total;
}

// tree_sum(terms, count) by all threads of a block of kTreeThreads; the result is for thread 0.
// Each thread takes a subtree of `whole` terms, a power of two, the last one the leftover. These
// are then added level by level; a subtree without a neighbour on its level is added to the
// leftover.
__device__ double block_tree_sum(const double* terms, int64_t count) {
  __shared__ double subtrees[kTreeThreads];
  int64_t whole = 1;
  while (whole * kTreeThreads < count) whole *= 2;
  const int64_t mine = int64_t(threadIdx.x) * whole;
  if (mine < count) {
    subtrees[threadIdx.x] = tree_sum(terms + mine, count - mine < whole ? count - mine : whole);
  }
  const int64_t full = count / whole;  // full subtrees; the terms behind them are the leftover
  double rest = 0;
  bool has_rest = full * whole < count;
  __syncthreads();
  if (has_rest) rest = subtrees[full];
  int64_t apart = 1;
  for (int64_t left = full; left > 0; left /= 2, apart *= 2) {
    if (left % 2 == 1) {
      const double last = subtrees[(left - 1) * apart];
      rest = has_rest ? last + rest : last;
      has_rest = true;
    }
    __syncthreads();
    if (int64_t(threadIdx.x) < left / 2) {
      subtrees[2 * threadIdx.x * apart] += subtrees[(2 * threadIdx.x + 1) * apart];
    }
    __syncthreads();
  }
  return rest;
}

__global__ void __launch_bounds__(kTreeThreads)
    step_outcome_kernel(StepSums sums, StepOutcome* outcome) {
  wait_for_earlier_kernels();
  const double loss = block_tree_sum(sums.losses, sums.shards);
  __syncthreads();  // the subtrees' memory is reused
  const double squares = block_tree_sum(sums.squares, sums.blocks);
  if (threadIdx.x == 0) {
    *outcome = StepOutcome::of(loss / sums.denominator, sqrt(squares), sums.max_norm,
                               sums.stop_requests,
                               sums.processes);
  }
}

// Applies the clipping factor. Returns false if nothing is to be updated.
__device__ bool take_outcome(AdamWStep& step) {
  if (!step.outcome) return true;
  step.scale = step.outcome->gradient_scale;
  return step.outcome->finite != 0;
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

// Updates kTimes times kWidth neighbours, from *p on and kWarpFours further on; all loads are in
// flight before the first is needed. rounded: where to write the new p in bf16 as well; may be
// null.
template <int kWidth, int kTimes>
__device__ void update(const AdamWStep& f, float* p, const float* g, float* m, float* v,
                       bfloat16* rounded) {
  float parameters[kTimes][kWidth], gradients[kTimes][kWidth];
  float first[kTimes][kWidth], second[kTimes][kWidth];
#pragma unroll
  for (int t = 0; t < kTimes; ++t) {
    load(p + t * kWarpFours, parameters[t]);
    load(g + t * kWarpFours, gradients[t]);
    load(m + t * kWarpFours, first[t]);
    load(v + t * kWarpFours, second[t]);
  }
#pragma unroll
  for (int t = 0; t < kTimes; ++t) {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      update_moments(f, f.scale * gradients[t][k], first[t][k], second[t][k]);
      parameters[t][k] = moved(f, parameters[t][k], first[t][k], second[t][k]);
    }
    store(p + t * kWarpFours, parameters[t]);
    store(m + t * kWarpFours, first[t]);
    store(v + t * kWarpFours, second[t]);
    if (rounded) store(rounded + t * kWarpFours, parameters[t]);
  }
}

// Each block updates a piece of the part that its number belongs to. Each warp takes a row of it,
// if rows are aligned to 16 bytes: its lanes load and store fours side by side. The rest of a
// part is updated one by one.
__global__ void adamw_parts_kernel(const LaunchedPart* parts, int64_t count, float* p,
                                   const float* g, float* m, float* v) {
  wait_for_earlier_kernels();
  // The last part that begins at or before this block is in [low, high).
  int64_t low = 0, high = count;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (parts[middle].first_block <= int64_t(blockIdx.x) ? low : high) = middle;
  }
  const LaunchedPart part = parts[low];
  AdamWStep step = part.step;
  if (!take_outcome(step)) return;
  const int64_t first = (int64_t(blockIdx.x) - part.first_block) * kPiece;
  const int64_t last = first + kPiece < part.count ? first + kPiece : part.count;
  const bool rows = begins_pack(p + part.begin) && begins_pack(g + part.begin) &&
                    begins_pack(m + part.begin) && begins_pack(v + part.begin) &&
                    begins_pack(part.rounded);
  auto at = [&](int64_t k, auto width, auto times) {
    const int64_t i = part.begin + k;
    update<width(), times()>(step, p + i, g + i, m + i, v + i,
                             part.rounded ? part.rounded + k : nullptr);
  };
  int64_t single = first;  // the first element outside of rows
  if (rows) {
    single += (last - first) / kRow * kRow;
    const int64_t k = first + warp() * kRow + lane() * kFour;
    if (k < single) at(k, std::integral_constant<int, kFour>(), std::integral_constant<int, kFours>());
  }
  for (int64_t k = single + threadIdx.x; k < last; k += kThreads) {
    at(k, std::integral_constant<int, 1>(), std::integral_constant<int, 1>());
  }
}

// For the given rows of matrices (V, cols), whose gradient is then set to zero: block x is a row,
// block y a strip of columns.
__global__ void adamw_rows_kernel(AdamWStep step, RowList rows, float* p, float* g, float* m,
                                  float* v, int64_t cols) {
  wait_for_earlier_kernels();
  const int64_t c = int64_t(blockIdx.y) * kThreads + threadIdx.x;
  if (c >= cols || !take_outcome(step)) return;
  const int64_t i = rows.rows[blockIdx.x] * cols + c;
  update<1, 1>(step, p + i, g + i, m + i, v + i, nullptr);
  g[i] = 0;
}

// Row rows[x] takes the last missed[x] of `count` steps, in order, with a zero gradient.
__global__ void catch_up_kernel(const AdamWStep* steps, int64_t count, RowList rows,
                                const int32_t* missed, float* p, float* m, float* v, int64_t cols) {
  wait_for_earlier_kernels();
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

// On a GPU reading zeros costs less than finding them: SparseRows is not used. Gradients that the
// second stream is still writing are read on that stream, and nothing waits for them.
void block_square_sums(Context& context, Matrix x, int64_t block, const SparseRows&, double* sums) {
  const int64_t blocks = divide_up(x.cols, block);
  const auto compute = [&] {
    launch(context, dim3(unsigned(blocks)), kThreads, square_sums_kernel, x.data, x.cols, block,
           sums);
  };
  if (!context.second || !context.second->touches(x)) return compute();
  context.second->run({x, {sums, 1, blocks, blocks, sizeof(double)}}, compute);
}

void add_losses(Context& context, Matrix losses, Matrix weights, bool accumulate, double* sum) {
  launch(context, dim3(1), kThreads, add_losses_kernel, losses.data, weights.data, losses.cols,
         accumulate, sum);
}

void step_outcome(Context& context, const StepSums& sums, StepOutcome* outcome) {
  launch(context, dim3(1), kTreeThreads, step_outcome_kernel, sums, outcome);
}

void adamw(Context& context, const AdamW& step, Matrix parameter, Matrix gradient, Matrix m,
           Matrix v) {
  const AdamWPart whole = {step, 0, parameter.cols};
  adamw_parts(context, {&whole, 1}, parameter, gradient, m, v);
}

void adamw_parts(Context& context, std::span<const AdamWPart> parts, Matrix parameter,
                 Matrix gradient, Matrix m, Matrix v) {
  std::vector<LaunchedPart> launched;
  launched.reserve(parts.size());
  int64_t blocks = 0;
  for (const AdamWPart& part : parts) {
    launched.push_back(
        {part, blocks, context.rounded_weights->target(parameter.data + part.begin, part.count)});
    blocks += divide_up(part.count, kPiece);
  }
  if (blocks == 0) return;
  const size_t bytes = launched.size() * sizeof(LaunchedPart);
  auto* device = static_cast<LaunchedPart*>(context.scratch(Scratch::parts, bytes));
  upload(context, device, launched.data(), bytes);
  launch(context, dim3(unsigned(blocks)), kThreads, adamw_parts_kernel, device,
         int64_t(launched.size()), parameter.data, gradient.data, m.data, v.data);
}

void adamw_rows(Context& context, const AdamW& step, RowList rows, Matrix parameter,
                Matrix gradient, Matrix m, Matrix v) {
  forget(context, parameter);
  launch(context, row_strips(rows, parameter.cols), kThreads, adamw_rows_kernel, step, rows,
         parameter.data, gradient.data, m.data, v.data, parameter.cols);
}

void adamw_catch_up(Context& context, std::span<const AdamW> steps, RowList rows,
                    const int32_t* missed, Matrix parameter, Matrix m, Matrix v) {
  const int64_t count = int64_t(steps.size());
  if (count == 0 || rows.count == 0) return;
  forget(context, parameter);
  // Early in a run each step needs room for one step more: reserve for many at once.
  const size_t room = size_t(divide_up(count, kStepsAtOnce) * kStepsAtOnce) * sizeof(AdamW);
  auto* device = static_cast<AdamW*>(context.scratch(Scratch::steps, room));
  upload(context, device, steps.data(), steps.size_bytes());
  launch(context, row_strips(rows, parameter.cols), kThreads, catch_up_kernel, device, count, rows,
         missed, parameter.data, m.data, v.data, parameter.cols);
}

}  // namespace finetune::cuda
