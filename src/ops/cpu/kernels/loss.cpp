// The four losses and their gradients, by plain loops in double precision. Losses are small (B rows
// of C classes, or T rows of 2), except over a vocabulary (wide_loss.h).
#include <algorithm>
#include <cmath>

#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/kernels/wide_loss.h"
#include "ops/cpu/tasks.h"

namespace finetune {
namespace {

// log(sum(exp(x))) of `count` values, `step` elements apart
double log_sum_exp(const float* x, int64_t count, int64_t step) {
  double largest = x[0];
  for (int64_t i = 1; i < count; ++i) largest = std::max(largest, double(x[i * step]));
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::exp(double(x[i * step]) - largest);
  return largest + std::log(sum);
}

double weight_of(Tensor weights, int64_t c) {
  return weights ? double(weights.f32()[c]) : 1.0;
}

// If the scale is 0: sets the loss and the sample's `rows` of dlogits to 0 and returns true.
bool left_out(float scale, float& loss, Tensor dlogits, int64_t first, int64_t rows) {
  if (scale != 0) return false;
  loss = 0;
  for (int64_t r = first; dlogits && r < first + rows; ++r) {
    std::fill_n(dlogits.f32() + r * dlogits.stride, dlogits.cols, 0.0f);
  }
  return true;
}

void check_losses(Tensor logits, Tensor losses, Tensor dlogits, int64_t samples) {
  FINETUNE_CHECK(losses.rows == 1 && losses.cols == samples);
  FINETUNE_CHECK(!dlogits || (dlogits.rows == logits.rows && dlogits.cols == logits.cols));
}

}  // namespace

void CpuBackend::cross_entropy(Tensor logits, const int32_t* labels, Tensor weights,
                               float smoothing, LossScale scale, Tensor losses, Tensor dlogits) {
  const int64_t classes = logits.cols;
  check_losses(logits, losses, dlogits, logits.rows);
  FINETUNE_CHECK(!weights || weights.size() == classes);
  if (classes >= cpu::kWideLoss && !weights && smoothing == 0) {
    return cpu::for_tasks(logits.rows, [&](int64_t b) {
      const float factor = scale.of(b);
      if (left_out(factor, losses.f32()[b], dlogits, b, 1)) return;
      float* dx = dlogits ? dlogits.f32() + b * dlogits.stride : nullptr;
      losses.f32()[b] =
          cpu::wide_loss(logits.f32() + b * logits.stride, classes, labels[b], factor, dx);
    });
  }
  cpu::for_ranges(logits.rows, cpu::row_grain(16 * classes), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const float factor = scale.of(b);
      if (left_out(factor, losses.f32()[b], dlogits, b, 1)) continue;
      const float* x = logits.f32() + b * logits.stride;
      const int64_t label = labels[b];
      const double log_sum = log_sum_exp(x, classes, 1);
      // The loss is sum_c share(c) * nll(c), with nll(c) = log_sum - x[c].
      const double weight = weight_of(weights, label);
      const double own = (1.0 - double(smoothing)) * weight;
      const double even = double(smoothing) / double(classes) * weight;
      double loss = own * (log_sum - double(x[label]));
      if (even > 0) {
        for (int64_t c = 0; c < classes; ++c) loss += even * (log_sum - double(x[c]));
      }
      losses.f32()[b] = float(loss);
      if (!dlogits) continue;
      float* dx = dlogits.f32() + b * dlogits.stride;
      const double total = own + even * double(classes);
      for (int64_t c = 0; c < classes; ++c) {
        const double share = even + (c == label ? own : 0.0);
        dx[c] = float(double(factor) * (total * std::exp(double(x[c]) - log_sum) - share));
      }
    }
  });
}

void CpuBackend::binary_cross_entropy(Tensor logits, Tensor targets, Tensor weights,
                                      LossScale scale, Tensor losses, Tensor dlogits) {
  const int64_t classes = logits.cols;
  check_losses(logits, losses, dlogits, logits.rows);
  FINETUNE_CHECK(targets.rows == logits.rows && targets.cols == classes);
  FINETUNE_CHECK(!weights || weights.size() == classes);
  cpu::for_ranges(logits.rows, cpu::row_grain(16 * classes), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const float factor = scale.of(b);
      if (left_out(factor, losses.f32()[b], dlogits, b, 1)) continue;
      const float* logit = logits.f32() + b * logits.stride;
      const float* target = targets.f32() + b * targets.stride;
      double loss = 0;
      for (int64_t c = 0; c < classes; ++c) {
        const double x = logit[c], t = target[c];
        const double share = weight_of(weights, c) / double(classes);
        loss += share * (std::max(x, 0.0) - x * t + std::log1p(std::exp(-std::abs(x))));
        if (dlogits) {
          dlogits.f32()[b * dlogits.stride + c] =
              float(double(factor) * share * (1.0 / (1.0 + std::exp(-x)) - t));
        }
      }
      losses.f32()[b] = float(loss);
    }
  });
}

void CpuBackend::squared_error(Tensor logits, Tensor targets, LossScale scale, Tensor losses,
                               Tensor dlogits) {
  check_losses(logits, losses, dlogits, logits.rows);
  FINETUNE_CHECK(logits.cols == 1 && targets.rows == 1 && targets.cols == logits.rows);
  for (int64_t b = 0; b < logits.rows; ++b) {
    const float factor = scale.of(b);
    if (left_out(factor, losses.f32()[b], dlogits, b, 1)) continue;
    const double difference = double(logits.f32()[b * logits.stride]) - double(targets.f32()[b]);
    losses.f32()[b] = float(difference * difference);
    if (dlogits) dlogits.f32()[b * dlogits.stride] = float(2.0 * double(factor) * difference);
  }
}

void CpuBackend::span_cross_entropy(Tensor logits, Segments segments, const int32_t* starts,
                                    const int32_t* ends, LossScale scale, Tensor losses,
                                    Tensor dlogits) {
  check_losses(logits, losses, dlogits, segments.count);
  FINETUNE_CHECK(logits.cols == 2);
  cpu::for_tasks(segments.count, [&](int64_t b) {
    const int64_t begin = segments.offsets[b], length = segments.offsets[b + 1] - begin;
    const float factor = scale.of(b);
    if (left_out(factor, losses.f32()[b], dlogits, begin, length)) return;
    double loss = 0;
    for (int64_t column = 0; column < 2; ++column) {
      const float* x = logits.f32() + begin * logits.stride + column;
      const int64_t answer = column == 0 ? starts[b] : ends[b];
      FINETUNE_CHECK(answer >= 0 && answer < length);
      const double log_sum = log_sum_exp(x, length, logits.stride);
      loss += 0.5 * (log_sum - double(x[answer * logits.stride]));
      if (!dlogits) continue;
      float* dx = dlogits.f32() + begin * dlogits.stride + column;
      for (int64_t i = 0; i < length; ++i) {
        const double probability = std::exp(double(x[i * logits.stride]) - log_sum);
        dx[i * dlogits.stride] =
            float(0.5 * double(factor) * (probability - (i == answer ? 1.0 : 0.0)));
      }
    }
    losses.f32()[b] = float(loss);
  });
}

}  // namespace finetune
