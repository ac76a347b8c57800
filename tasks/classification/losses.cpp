// Cross entropy and binary cross entropy of one sample in double.
#include "tasks/classification/losses.h"

#include <algorithm>
#include <cmath>

namespace finetune {

double cross_entropy_loss(std::span<const float> logits, int32_t label,
                          std::span<const float> weights, double smoothing) {
  double highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits) sum += std::exp(double(logit) - highest);
  const double log_sum = std::log(sum);
  const double weight = weights.empty() ? 1.0 : double(weights[size_t(label)]);
  auto weighted = [&](size_t c) {  // the difference first: huge logits would swallow the sum
    return weight * (highest - double(logits[c]) + log_sum);
  };
  double loss = (1 - smoothing) * weighted(size_t(label));
  if (smoothing == 0) return loss;
  double all = 0;
  for (size_t c = 0; c < logits.size(); ++c) all += weighted(c);
  return loss + smoothing / double(logits.size()) * all;
}

double binary_cross_entropy_loss(std::span<const float> logits, std::span<const int32_t> positive) {
  double loss = 0;
  for (float logit : logits) {  // -log(1 - sigmoid(x)) = max(x, 0) + log(1 + exp(-|x|))
    double x = logit;
    loss += std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  }
  for (int32_t c : positive) loss -= double(logits[size_t(c)]);
  return loss / double(logits.size());
}

}  // namespace finetune
