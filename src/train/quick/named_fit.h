// Fits a head to samples and to the names of their labels.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "tasks/objective.h"
#include "train/quick/linear_fit.h"

namespace finetune {

// fit_linear_head() of one label a sample. If the samples show that labels' names are near their
// own samples, each name counts as one more sample. `features` (samples + names, width): the
// samples' rows, then one row for each label's name; there may be no rows of names. `check_stop`:
// as fit_linear_head's.
LinearFit fit_named_head(std::span<const float> features, int64_t width,
                         const TrainingArrays& arrays,
                         const std::function<void()>& check_stop = {});

}  // namespace finetune
