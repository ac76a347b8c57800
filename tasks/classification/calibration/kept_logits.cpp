// Keeps every k-th row's logits, so that they stay within a bound.
#include "tasks/classification/calibration/kept_logits.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace finetune {
namespace {

constexpr int64_t kMostFittedLogits = int64_t{1} << 22;

}  // namespace

KeptLogits::KeptLogits(const ClassificationData& data, Keeps keeps) : data_(data) {
  if (keeps == Keeps::nothing || data.problem == ProblemType::regression) return;
  const int64_t rows = data.eval.set.examples, values = rows * data.outputs();
  fitted_stride_ = std::max<int64_t>(1, (values + kMostFittedLogits - 1) / kMostFittedLogits);
  has_all_ =
      keeps == Keeps::all && data.problem == ProblemType::single_label && values <= kMostLogits;
  stride_ = has_all_ ? 1 : fitted_stride_;
  logits_.resize(size_t((rows + stride_ - 1) / stride_ * data.outputs()));
}

void KeptLogits::keep(int64_t row, const float* logits) {
  if (stride_ == 0 || row % stride_ != 0) return;
  const int64_t outputs = data_.outputs();
  std::copy_n(logits, outputs, logits_.begin() + row / stride_ * outputs);
}

std::vector<float> KeptLogits::take_all() {
  FINETUNE_CHECK(has_all_);
  has_all_ = false;
  stride_ = fitted_stride_ = 0;
  return std::exchange(logits_, {});
}

HeldOutLogits KeptLogits::held_out(std::span<const float> margins, bool of_known_labels) const {
  HeldOutLogits held;
  held.outputs = data_.outputs();
  held.several_labels = data_.problem == ProblemType::multi_label;
  if (fitted_stride_ == 0) return held;
  const auto append = [&](std::span<const float> from, int64_t row, std::vector<float>& to) {
    const auto values = from.subspan(size_t(row * held.outputs), size_t(held.outputs));
    to.insert(to.end(), values.begin(), values.end());
  };
  for (int64_t row = 0; row < data_.eval.set.examples; row += fitted_stride_) {
    if (held.several_labels) {
      if (!of_known_labels) break;
      const auto truth = data_.eval.label_sets[row];
      const auto known = std::lower_bound(truth.begin(), truth.end(), int32_t(held.outputs));
      held.sets.push_back(truth.first(size_t(known - truth.begin())));
    } else {
      const int32_t label = data_.eval.labels[size_t(row)];
      if ((label < held.outputs) != of_known_labels) continue;
      held.labels.push_back(label);
    }
    held.parts.push_back(data_.eval.parts[size_t(row)]);
    append(logits_, row / stride_, held.logits);
    if (!margins.empty()) append(margins, row, held.margins);
  }
  return held;
}

}  // namespace finetune
