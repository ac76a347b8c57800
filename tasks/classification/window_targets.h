// What training takes of rows that have windows: each window is a sample with its row's target, and
// the windows of a row weigh as much as one sample. Losses are convex in the logits, so a row's
// mean loss is never less than the loss of its windows' mean logits, which evaluation takes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tasks/classification/rows/dataset.h"

namespace finetune {

// By window. Members of other problem types are empty.
struct WindowTargets {
  std::vector<int32_t> labels;
  LabelSets label_sets;
  std::vector<float> targets;
  std::vector<float> weights;  // 1 / windows of its row
};

// `targets`: of the rows, as training takes them. The set has windows.
WindowTargets window_targets(const ClassificationSide& rows, std::span<const float> targets);

}  // namespace finetune
