// Finds each label's threshold with the highest F1, and keeps those that also help on other rows.
#include "tasks/classification/calibration/thresholds.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace finetune {
namespace {

struct Decision {
  float probability;
  bool has;
};

// Sorted from the highest probability on.
std::vector<Decision> decisions_of(const HeldOutLogits& held, RowChoice rows, double temperature,
                                   int32_t label) {
  std::vector<Decision> out;
  std::vector<double> probability;
  for (int64_t row = 0; row < held.rows(); ++row) {
    if (!rows.has(held, row)) continue;
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

using PartThresholds = std::array<std::vector<float>, kFitParts>;

MultiLabelScores scores_with(const HeldOutLogits& held,
                             const std::array<double, kFitParts>& temperatures,
                             const PartThresholds& thresholds) {
  std::vector<ClassScores> counts(static_cast<size_t>(held.outputs));
  int64_t whole = 0;
  std::vector<double> probabilities;
  for (int64_t row = 0; row < held.rows(); ++row) {
    const size_t part = held.parts[size_t(row)];
    probabilities_at(held.row(row), true, temperatures[part], probabilities);
    std::vector<int32_t> given;
    for (size_t c = 0; c < probabilities.size(); ++c) {
      if (float(probabilities[c]) >= thresholds[part][c]) given.push_back(int32_t(c));
    }
    whole += count_labels(counts, held.sets[row], given);
  }
  return multi_label_scores(std::move(counts), whole, held.rows());
}

}  // namespace

std::vector<float> best_thresholds(const HeldOutLogits& held, RowChoice rows, double temperature,
                                   int64_t least_rows) {
  std::vector<float> thresholds;
  for (int32_t label = 0; label < int32_t(held.outputs); ++label) {
    thresholds.push_back(best_threshold(decisions_of(held, rows, temperature, label), least_rows));
  }
  return thresholds;
}

TunedThresholds tuned_thresholds(const HeldOutLogits& held,
                                 const std::array<double, kFitParts>& temperatures,
                                 double temperature, int64_t least_rows) {
  PartThresholds one_half, fitted;
  one_half.fill(std::vector<float>(size_t(held.outputs), 0.5f));
  for (int part = 0; part < kFitParts; ++part) {
    fitted[size_t(part)] = best_thresholds(held, {RowChoice::Of::others, part},
                                           temperatures[size_t(part)], least_rows);
  }
  TunedThresholds out;
  out.before = scores_with(held, temperatures, one_half);
  const MultiLabelScores all = scores_with(held, temperatures, fitted);
  out.thresholds = best_thresholds(held, {}, temperature, least_rows);
  for (size_t c = 0; c < out.thresholds.size(); ++c) {
    const auto support = double(all.classes[c].support);
    const double of_always = 2 * support / (support + double(held.rows()));
    const double f1 = all.classes[c].f1;
    if (f1 > out.before.classes[c].f1 && f1 > of_always) {
      out.tuned += out.thresholds[c] != 0.5f;
      continue;
    }
    out.thresholds[c] = 0.5f;
    for (std::vector<float>& own : fitted) own[c] = 0.5f;
  }
  out.after = scores_with(held, temperatures, fitted);
  return out;
}

}  // namespace finetune
