// Fits a linear layer to the features of a frozen encoder.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "engine/pooled_weights.h"
#include "tasks/objective.h"

namespace finetune {

struct LinearFit {
  LinearHead head;
  double loss = 0;  // mean over the samples, without the penalty
  int64_t iterations = 0;
  bool has_names = false;  // the samples include label names, see named_fit.h
};

// Minimizes the task's loss and a penalty on squared weights over all samples: multinomial logistic
// regression, one logistic regression a label where rows have several, or ridge regression.
// `features` (samples, width). The same bits for any number of threads. `check_stop` is called
// before each iteration; what it throws ends the fit.
LinearFit fit_linear_head(std::span<const float> features, int64_t width,
                          const TrainingArrays& arrays,
                          const std::function<void()>& check_stop = {});

}  // namespace finetune
