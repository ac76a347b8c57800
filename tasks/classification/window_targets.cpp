// Repeats rows' targets for their windows.
#include "tasks/classification/window_targets.h"

#include "core/error.h"

namespace finetune {

WindowTargets window_targets(const ClassificationSide& rows, std::span<const float> targets) {
  const std::vector<int64_t>& first = rows.set.first_window;
  FINETUNE_CHECK(int64_t(first.size()) == rows.set.examples + 1);
  WindowTargets out;
  for (size_t row = 0; row + 1 < first.size(); ++row) {
    const size_t windows = size_t(first[row + 1] - first[row]);
    const float weight = float(1.0 / double(windows));
    out.weights.insert(out.weights.end(), windows, weight);
    if (!rows.labels.empty()) out.labels.insert(out.labels.end(), windows, rows.labels[row]);
    if (!targets.empty()) out.targets.insert(out.targets.end(), windows, targets[row]);
    if (rows.label_sets.size() == 0) continue;
    for (size_t w = 0; w < windows; ++w) out.label_sets.push_back(rows.label_sets[int64_t(row)]);
  }
  return out;
}

}  // namespace finetune
