// What one AdamW step does to every element alike, worked out in double from ops/backend.h's AdamW.
#pragma once

#include "ops/backend.h"

namespace finetune::cpu {

struct AdamWFactors {
  explicit AdamWFactors(const AdamW& options);

  float scale;         // of the gradient
  float beta1, rest1;  // m = beta1 * m + rest1 * g
  float beta2, rest2;  // v = beta2 * v + rest2 * g^2
  float decay;         // p * decay - rate * m / (sqrt(v) * root + epsilon)
  float rate;
  float root;
  float epsilon;
  // m = 0 moves p by exactly nothing (no 0 / 0, no infinity): p * decay is all that is left.
  bool rests_on_zero;
};

// A part of an arena as it is updated, in tasks of `grain` elements.
struct UpdatedPart {
  AdamWFactors factors;
  int64_t begin, count, grain;
  int64_t first_task;
  int64_t cols;  // of weights that are packed (packed_weights.h), a group a task, or 0
};

}  // namespace finetune::cpu
