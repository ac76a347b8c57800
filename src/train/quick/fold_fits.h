// Fits a head without each fold, so that no sample is measured by a head that has seen it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tasks/objective.h"

namespace finetune {

// Returns logits (samples, outputs), each sample's by a head that was fitted without the sample's
// fold (folds_of_samples). A label that no other fold has gets the sample's lowest logit.
// `features`: as fit_named_head's; names are in all folds.
std::vector<float> out_of_fold_logits(std::span<const float> features, int64_t width,
                                      const TrainingArrays& arrays, int folds,
                                      const std::function<void()>& check_stop = {});

}  // namespace finetune
