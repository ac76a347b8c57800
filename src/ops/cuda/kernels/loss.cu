// Loss kernels in double precision, with the formulas of ops/backend.h. Losses are small (B rows of
// C classes, or T rows of 2). One warp per sample; each lane takes every 32nd class or token.
#include "ops/cuda/ops.h"
#include "ops/cuda/kernels/warp.h"

namespace finetune::cuda {
namespace {

constexpr int kWarps = 4;  // one sample each
constexpr int kThreads = kWarps * kWarp;

// log(sum(exp(x))) of `count` values, `step` elements apart
__device__ double log_sum_exp(const float* x, int64_t count, int64_t step) {
  double largest = -INFINITY;
  for (int64_t i = lane(); i < count; i += kWarp) largest = fmax(largest, double(x[i * step]));
  largest = warp_max(largest);
  double sum = 0;
  for (int64_t i = lane(); i < count; i += kWarp) sum += exp(double(x[i * step]) - largest);
  return largest + log(warp_sum(sum));
}

// If the scale is 0: sets the loss and the sample's `rows` of dlogits to 0 and returns true. Called
// by a whole warp.
__device__ bool left_out(float scale, float* loss, const Matrix& dlogits, int64_t first,
                         int64_t rows) {
  if (scale != 0) return false;
  if (lane() == 0) *loss = 0;
  const int64_t count = dlogits.data ? rows * dlogits.cols : 0;
  for (int64_t i = lane(); i < count; i += kWarp) {
    dlogits.row(first + i / dlogits.cols)[i % dlogits.cols] = 0;
  }
  return true;
}

__device__ double weight_of(const float* weights, int64_t c) {
  return weights ? double(weights[c]) : 1.0;
}

// The loss is sum_c share(c) * nll(c), with nll(c) = log_sum - x[c] and share(c) = w[y] * smoothing
// / C, plus w[y] * (1 - smoothing) for the label y.
__global__ void cross_entropy_kernel(Matrix logits, const int32_t* labels, const float* weights,
                                     float smoothing, LossScale scale, float* losses,
                                     Matrix dlogits) {
  wait_for_earlier_kernels();
  const int64_t b = int64_t(blockIdx.x) * kWarps + warp(), classes = logits.cols;
  if (b >= logits.rows) return;
  const float factor = scale.of(b);
  if (left_out(factor, losses + b, dlogits, b, 1)) return;
  const float* x = logits.row(b);
  const int64_t label = labels[b];
  if (label < 0 || label >= classes) {
    if (lane() == 0) losses[b] = NAN;
    return;
  }
  const double answer = x[label];  // read before dlogits, which may be logits, is written
  const double log_sum = log_sum_exp(x, classes, 1);
  const double weight = weight_of(weights, label);
  const double own = (1.0 - double(smoothing)) * weight;
  const double even = double(smoothing) / double(classes) * weight;
  double smooth_loss = 0;
  for (int64_t c = lane(); c < classes; c += kWarp) smooth_loss += log_sum - double(x[c]);
  smooth_loss = warp_sum(smooth_loss);
  if (lane() == 0) {
    losses[b] = float(own * (log_sum - answer) + (even > 0 ? even * smooth_loss : 0.0));
  }
  if (!dlogits.data) return;
  const double total = own + even * double(classes);
  __syncwarp();  // all lanes have read x[label]
  for (int64_t c = lane(); c < classes; c += kWarp) {
    const double share = even + (c == label ? own : 0.0);
    dlogits.row(b)[c] = float(double(factor) * (total * exp(double(x[c]) - log_sum) - share));
  }
}

__global__ void binary_cross_entropy_kernel(Matrix logits, Matrix targets, const float* weights,
                                            LossScale scale, float* losses, Matrix dlogits) {
  wait_for_earlier_kernels();
  const int64_t b = int64_t(blockIdx.x) * kWarps + warp(), classes = logits.cols;
  if (b >= logits.rows) return;
  const float factor = scale.of(b);
  if (left_out(factor, losses + b, dlogits, b, 1)) return;
  double loss = 0;
  for (int64_t c = lane(); c < classes; c += kWarp) {
    const double x = logits.row(b)[c], t = targets.row(b)[c];
    const double share = weight_of(weights, c) / double(classes);
    loss += share * (fmax(x, 0.0) - x * t + log1p(exp(-fabs(x))));
    if (dlogits.data) {
      dlogits.row(b)[c] = float(double(factor) * share * (1.0 / (1.0 + exp(-x)) - t));
    }
  }
  loss = warp_sum(loss);
  if (lane() == 0) losses[b] = float(loss);
}

__global__ void squared_error_kernel(Matrix logits, const float* targets, LossScale scale,
                                     float* losses, Matrix dlogits) {
  wait_for_earlier_kernels();
  const int64_t b = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (b >= logits.rows) return;
  const float factor = scale.of(b);
  const double difference =
      factor != 0 ? double(logits.row(b)[0]) - double(targets[b]) : 0.0;  // avoids 0 times infinity
  losses[b] = float(difference * difference);
  if (dlogits.data) dlogits.row(b)[0] = float(2.0 * double(factor) * difference);
}

__global__ void span_cross_entropy_kernel(Matrix logits, Segments segments, const int32_t* starts,
                                          const int32_t* ends, LossScale scale, float* losses,
                                          Matrix dlogits) {
  wait_for_earlier_kernels();
  const int64_t b = int64_t(blockIdx.x) * kWarps + warp();
  if (b >= segments.count) return;
  const int64_t begin = segments.offsets[b], length = segments.offsets[b + 1] - begin;
  const float factor = scale.of(b);
  if (left_out(factor, losses + b, dlogits, begin, length)) return;
  double loss = 0;
  for (int64_t column = 0; column < 2; ++column) {
    const int64_t answer = column == 0 ? starts[b] : ends[b];
    const float* x = logits.row(begin) + column;
    if (answer < 0 || answer >= length) {
      loss = NAN;
      continue;
    }
    const double chosen = x[answer * logits.stride];  // dlogits may be logits
    const double log_sum = log_sum_exp(x, length, logits.stride);
    loss += 0.5 * (log_sum - chosen);
    if (!dlogits.data) continue;
    __syncwarp();  // all lanes have read `chosen`
    for (int64_t i = lane(); i < length; i += kWarp) {
      const double probability = exp(double(x[i * logits.stride]) - log_sum);
      dlogits.row(begin + i)[column] =
          float(0.5 * double(factor) * (probability - (i == answer ? 1.0 : 0.0)));
    }
  }
  if (lane() == 0) losses[b] = float(loss);
}

dim3 warps_for(int64_t samples) {
  return dim3(unsigned(divide_up(samples, kWarps)));
}

}  // namespace

void cross_entropy(Context& context, Matrix logits, const int32_t* labels, Matrix weights,
                   float smoothing, LossScale scale, Matrix losses, Matrix dlogits) {
  launch(context, warps_for(logits.rows), kThreads, cross_entropy_kernel, logits, labels,
         weights.data, smoothing, scale, losses.data, dlogits);
}

void binary_cross_entropy(Context& context, Matrix logits, Matrix targets, Matrix weights,
                          LossScale scale, Matrix losses, Matrix dlogits) {
  launch(context, warps_for(logits.rows), kThreads, binary_cross_entropy_kernel, logits, targets,
         weights.data, scale, losses.data, dlogits);
}

void squared_error(Context& context, Matrix logits, Matrix targets, LossScale scale, Matrix losses,
                   Matrix dlogits) {
  launch(context, dim3(unsigned(divide_up(logits.rows, kThreads))), kThreads, squared_error_kernel,
         logits, targets.data, scale, losses.data, dlogits);
}

void span_cross_entropy(Context& context, Matrix logits, Segments segments, const int32_t* starts,
                        const int32_t* ends, LossScale scale, Matrix losses, Matrix dlogits) {
  launch(context, warps_for(segments.count), kThreads, span_cross_entropy_kernel, logits, segments,
         starts, ends, scale, losses.data, dlogits);
}

}  // namespace finetune::cuda
