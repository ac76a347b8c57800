// The factors of one AdamW step, computed in double from the AdamW options of ops/backend.h.
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
  // If m = 0, the step changes p only by p * decay (there is no 0 / 0 and no infinity).
  bool rests_on_zero;
};

// A part of an arena during an update, in tasks of `grain` elements.
struct UpdatedPart {
  AdamWFactors factors;
  int64_t begin, count, grain;
  int64_t first_task;
  int64_t cols;  // columns of weights to pack (packed_weights.h), one group per task; or 0
};

}  // namespace finetune::cpu
