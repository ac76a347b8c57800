// Fits a head to samples and to the names of their labels.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "tasks/objective.h"
#include "train/quick/linear_fit.h"

namespace finetune {

// fit_linear_head() of one label a sample, where each label's name counts as one more sample of the
// label if the samples show that names are near them. `features` (samples + names, width) has the
// features of the samples and then those of the names: one for each label, or none.
// `check_stop`: as fit_linear_head's.
LinearFit fit_named_head(std::span<const float> features, int64_t width,
                         const TrainingArrays& arrays,
                         const std::function<void()>& check_stop = {});

}  // namespace finetune
