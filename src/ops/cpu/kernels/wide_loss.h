// Cross entropy of a sample with so many classes that exponentials are most of a step's time.
#pragma once

#include <cstdint>

namespace finetune::cpu {

constexpr int64_t kWideLoss = 2048;  // classes

// The loss of one row without weights or smoothing, and where dx, which may be x, is given its
// gradient times `scale`. Exponentials are those of floats, their sum is of blocks of them, in
// double.
float wide_loss(const float* x, int64_t classes, int32_t label, float scale, float* dx);

}  // namespace finetune::cpu
