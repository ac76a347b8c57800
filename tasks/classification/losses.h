// Losses of one sample on the host, in double: evaluation needs no device for them. The formulas
// are those of the backend's cross_entropy, binary_cross_entropy and squared_error.
#pragma once

#include <cstdint>
#include <span>

namespace finetune {

// w[y] * ((1 - smoothing) * nll(y) + smoothing / C * sum_c nll(c)); without weights all are 1.
double cross_entropy_loss(std::span<const float> logits, int32_t label,
                          std::span<const float> weights, double smoothing);
// Mean over the classes; `positive` lists the classes whose target is 1.
double binary_cross_entropy_loss(std::span<const float> logits, std::span<const int32_t> positive);

}  // namespace finetune
