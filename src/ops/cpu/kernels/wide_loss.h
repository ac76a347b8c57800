// Cross entropy with so many classes that exponentials dominate a step's time.
#pragma once

#include <cstdint>

namespace finetune::cpu {

constexpr int64_t kWideLoss = 2048;  // classes

// The loss of one row without weights or smoothing. If given, dx (which may be x) becomes its
// gradient times `scale`. Exponentials are computed in float, block sums are added in double.
float wide_loss(const float* x, int64_t classes, int32_t label, float scale, float* dx);

}  // namespace finetune::cpu
