// Computes loss, gradient norm and clip scale from a training step's sums. Every backend uses this
// before the update, on the host or in its own memory. GPU kernels call it too.
#pragma once

#include <cstdint>

namespace finetune {

struct StepOutcome {
  double loss = 0;
  double gradient_norm = 0;  // before clipping
  float gradient_scale = 1;  // factor that clips the gradient
  int32_t finite = 0;        // 0: loss or norm is not finite; nothing is updated
  int32_t stop_request = 0;  // the largest over all processes

  // Clips to `max_norm` like torch.nn.utils.clip_grad_norm_; 0: no clipping. stop_requests has one
  // element per process.
  static constexpr StepOutcome of(double loss, double gradient_norm, double max_norm,
                                  const double* stop_requests, int64_t processes) {
    const bool finite = loss - loss == 0 && gradient_norm - gradient_norm == 0;
    const double scale = max_norm > 0 ? max_norm / (gradient_norm + 1e-6) : 1.0;
    double largest = 0;
    for (int64_t i = 0; i < processes; ++i)
      largest = stop_requests[i] > largest ? stop_requests[i] : largest;
    return {loss, gradient_norm, float(scale < 1.0 ? scale : 1.0), finite, int32_t(largest)};
  }
};

}  // namespace finetune
