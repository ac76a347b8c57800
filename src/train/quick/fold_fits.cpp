// Copies the samples outside of a fold, fits a head to them and applies it to the fold.
#include "train/quick/fold_fits.h"

#include <algorithm>

#include "train/quick/named_fit.h"

namespace finetune {
namespace {

// The samples that are not in a fold, in memory of their own.
struct OtherFolds {
  std::vector<float> features, targets, sample_weights;
  std::vector<int32_t> labels, set_ids;
  std::vector<int64_t> set_offsets{0};
  std::vector<uint8_t> has_label;  // (outputs); one label a sample
  TrainingArrays arrays;

  OtherFolds(std::span<const float> all, int64_t width, const TrainingArrays& from,
             std::span<const uint8_t> folds, uint8_t fold)
      : has_label(size_t(from.head.outputs)), arrays(from) {
    size_t count = 0;
    for (size_t row = 0; row < folds.size(); ++row) {
      if (folds[row] == fold) continue;
      ++count;
      const auto own = all.subspan(row * size_t(width), size_t(width));
      features.insert(features.end(), own.begin(), own.end());
      if (!from.sample_weights.empty()) sample_weights.push_back(from.sample_weights[row]);
      if (!from.targets.empty()) targets.push_back(from.targets[row]);
      if (!from.labels.empty()) {
        labels.push_back(from.labels[row]);
        has_label[size_t(labels.back())] = 1;
      }
      if (!from.set_offsets.empty()) {
        const auto begin = from.set_ids.begin() + from.set_offsets[row];
        set_ids.insert(set_ids.end(), begin, from.set_ids.begin() + from.set_offsets[row + 1]);
        set_offsets.push_back(int64_t(set_ids.size()));
      }
    }
    const auto names = all.subspan(folds.size() * size_t(width));
    features.insert(features.end(), names.begin(), names.end());
    arrays.samples = {};
    arrays.samples.second = from.samples.second.first(count);  // the fit reads their number alone
    arrays.labels = labels;
    arrays.targets = targets;
    arrays.sample_weights = sample_weights;
    arrays.set_ids = set_ids;
    if (!from.set_offsets.empty()) arrays.set_offsets = set_offsets;
  }
};

void apply_head(const LinearHead& head, std::span<const float> features, std::span<float> logits) {
  for (size_t c = 0; c < logits.size(); ++c) {
    double sum = double(head.bias[c]);
    for (size_t i = 0; i < features.size(); ++i) {
      sum += double(head.weight[c * features.size() + i]) * double(features[i]);
    }
    logits[c] = float(sum);
  }
}

}  // namespace

std::vector<float> out_of_fold_logits(std::span<const float> features, int64_t width,
                                      const TrainingArrays& arrays, int folds,
                                      const std::function<void()>& check_stop) {
  const std::vector<uint8_t> fold_of = folds_of_samples(arrays, folds);
  const auto outputs = size_t(arrays.head.outputs);
  std::vector<float> out(fold_of.size() * outputs);
  for (int fold = 0; fold < folds; ++fold) {
    const OtherFolds others(features, width, arrays, fold_of, uint8_t(fold));
    const LinearFit fit = fit_named_head(others.features, width, others.arrays, check_stop);
    for (size_t row = 0; row < fold_of.size(); ++row) {
      if (fold_of[row] != fold) continue;
      const std::span logits = std::span(out).subspan(row * outputs, outputs);
      apply_head(fit.head, features.subspan(row * size_t(width), size_t(width)), logits);
      if (arrays.labels.empty() || fit.has_names) continue;
      float lowest = *std::max_element(logits.begin(), logits.end());
      for (size_t c = 0; c < outputs; ++c) {
        if (others.has_label[c]) lowest = std::min(lowest, logits[c]);
      }
      for (size_t c = 0; c < outputs; ++c) {
        if (!others.has_label[c]) logits[c] = lowest;
      }
    }
  }
  return out;
}

}  // namespace finetune
