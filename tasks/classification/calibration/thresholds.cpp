// Finds each label's threshold with the highest F1.
#include <algorithm>
#include <cmath>

#include "tasks/classification/calibration/held_out_logits.h"

namespace finetune {
namespace {

struct Decision {
  float probability;
  bool has;
};

// Highest probability first.
std::vector<Decision> decisions_of(const HeldOutLogits& held, RowStride rows, double temperature,
                                   int32_t label) {
  std::vector<Decision> out;
  std::vector<double> probability;
  for (int64_t row = rows.first; row < held.rows(); row += rows.stride) {
    probabilities_at(held.row(row).subspan(size_t(label), 1), true, temperature, probability);
    const auto truth = held.sets[row];
    out.push_back({float(probability[0]), std::binary_search(truth.begin(), truth.end(), label)});
  }
  std::sort(out.begin(), out.end(),
            [](const Decision& a, const Decision& b) { return a.probability > b.probability; });
  return out;
}

float best_threshold(const std::vector<Decision>& decisions, int64_t least_rows) {
  const int64_t support = std::count_if(decisions.begin(), decisions.end(),
                                        [](const Decision& decision) { return decision.has; });
  float best = 0.5f;
  if (support < least_rows) return best;
  double best_f1 = -1;
  int64_t correct = 0;
  for (size_t i = 0; i < decisions.size(); ++i) {
    correct += decisions[i].has;
    const float here = decisions[i].probability;
    const float below = i + 1 < decisions.size() ? decisions[i + 1].probability : 0.0f;
    if (below == here) continue;
    const float middle = below + (here - below) / 2, threshold = middle > below ? middle : here;
    const double f1 = 2.0 * double(correct) / double(support + int64_t(i) + 1);
    const bool nearer = std::abs(threshold - 0.5f) < std::abs(best - 0.5f);
    if (f1 < best_f1 || (f1 == best_f1 && !nearer)) continue;
    best_f1 = f1;
    best = threshold;
  }
  return best;
}

}  // namespace

std::vector<float> best_thresholds(const HeldOutLogits& held, RowStride rows, double temperature,
                                   int64_t least_rows) {
  std::vector<float> thresholds;
  for (int32_t label = 0; label < int32_t(held.outputs); ++label) {
    thresholds.push_back(best_threshold(decisions_of(held, rows, temperature, label), least_rows));
  }
  return thresholds;
}

}  // namespace finetune
