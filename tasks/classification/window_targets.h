// Targets for training on rows with windows. Each window is a sample with its row's target, and a
// row's windows weigh as much as one sample. Losses are convex in the logits, so a row's mean loss
// is at least the loss that evaluation computes, from the mean logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tasks/classification/rows/dataset.h"

namespace finetune {

// One entry per window. Members for other problem types are empty.
struct WindowTargets {
  std::vector<int32_t> labels;
  LabelSets label_sets;
  std::vector<float> targets;
  std::vector<float> weights;  // 1 / the number of windows of its row
};

// `targets`: the rows' training targets. The set has windows.
WindowTargets window_targets(const ClassificationSide& rows, std::span<const float> targets);

}  // namespace finetune
