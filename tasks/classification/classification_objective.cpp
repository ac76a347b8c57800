// Uploads classification targets, and computes loss and its denominator.
#include <algorithm>
#include <vector>

#include "core/error.h"
#include "tasks/classification/classification_traits.h"
#include "tasks/classification/rows/dataset.h"

namespace finetune {
namespace {

void check_sizes(const TrainingArrays& arrays) {
  const size_t count = size_t(arrays.samples.size());
  switch (arrays.problem) {
    case ProblemType::single_label:
      FINETUNE_CHECK(arrays.labels.size() == count);
      FINETUNE_CHECK(arrays.class_weights.empty() ||
                     int64_t(arrays.class_weights.size()) == arrays.head.outputs);
      break;
    case ProblemType::multi_label:
      FINETUNE_CHECK(arrays.set_offsets.size() == count + 1);
      break;
    case ProblemType::regression:
      FINETUNE_CHECK(arrays.targets.size() == count);
      break;
  }
  FINETUNE_CHECK(arrays.sample_weights.empty() || arrays.sample_weights.size() == count);
}

class ClassificationObjective final : public Objective {
 public:
  explicit ClassificationObjective(const TrainingArrays& arrays) : arrays_(arrays) {
    check_sizes(arrays);
  }

  const SampleView& samples() const override { return arrays_.samples; }
  void complete(PackedBatch& batch) const override;
  double loss_denominator(std::span<const uint32_t> indices) const override;
  void reserve(Backend& backend, int64_t max_sequences) override;
  void upload_targets(Backend& backend, const PackedBatch& batch) override;
  void loss(Backend& backend, const DeviceBatch& device, Tensor logits, Tensor losses,
            Tensor dlogits) override;

 private:
  TrainingArrays arrays_;
  // Room for the largest micro-batch: labels, or rows of float targets.
  int64_t max_sequences_ = 0;
  std::shared_ptr<void> targets_;
  std::shared_ptr<void> class_weights_;
  std::vector<int32_t> label_staging_;
  std::vector<float> target_staging_;
};

void ClassificationObjective::complete(PackedBatch& batch) const {
  if (arrays_.sample_weights.empty()) return;
  for (uint32_t i : batch.indices) batch.weights.push_back(arrays_.sample_weights[i]);
}

double ClassificationObjective::loss_denominator(std::span<const uint32_t> indices) const {
  const bool by_class = !arrays_.class_weights.empty(), by_sample = !arrays_.sample_weights.empty();
  if (!by_class && !by_sample) return double(indices.size());
  double sum = 0;
  for (uint32_t i : indices) {
    const double of_class = by_class ? double(arrays_.class_weights[size_t(arrays_.labels[i])]) : 1;
    sum += of_class * (by_sample ? double(arrays_.sample_weights[i]) : 1);
  }
  return sum;
}

void ClassificationObjective::reserve(Backend& backend, int64_t max_sequences) {
  max_sequences_ = max_sequences;
  size_t count = size_t(max_sequences);
  if (arrays_.problem == ProblemType::single_label) {
    targets_ = backend.allocate(count * sizeof(int32_t));
    label_staging_.resize(count);
  } else {
    size_t values = count * size_t(arrays_.head.outputs);
    targets_ = backend.allocate(values * sizeof(float));
    target_staging_.resize(values);
  }
  if (arrays_.class_weights.empty()) return;
  size_t bytes = arrays_.class_weights.size_bytes();
  class_weights_ = backend.allocate(bytes);
  backend.upload(class_weights_.get(), arrays_.class_weights.data(), bytes);
}

void ClassificationObjective::upload_targets(Backend& backend, const PackedBatch& batch) {
  FINETUNE_CHECK(batch.sequences() <= max_sequences_);
  size_t count = batch.indices.size();
  size_t outputs = size_t(arrays_.head.outputs);
  if (arrays_.problem == ProblemType::single_label) {
    for (size_t b = 0; b < count; ++b) label_staging_[b] = arrays_.labels[batch.indices[b]];
    backend.upload(targets_.get(), label_staging_.data(), count * sizeof(int32_t));
    return;
  }
  std::fill_n(target_staging_.begin(), count * outputs, 0.0f);
  for (size_t b = 0; b < count; ++b) {
    const size_t sample = batch.indices[b];
    if (arrays_.problem == ProblemType::regression) {
      target_staging_[b] = arrays_.targets[sample];
      continue;
    }
    for (int64_t i = arrays_.set_offsets[sample]; i < arrays_.set_offsets[sample + 1]; ++i) {
      target_staging_[b * outputs + size_t(arrays_.set_ids[size_t(i)])] = 1.0f;
    }
  }
  backend.upload(targets_.get(), target_staging_.data(), count * outputs * sizeof(float));
}

void ClassificationObjective::loss(Backend& backend, const DeviceBatch& device, Tensor logits,
                                   Tensor losses, Tensor dlogits) {
  int64_t rows = device.sequences(), outputs = arrays_.head.outputs;
  const LossScale scale = device.loss_scale();
  auto* floats = static_cast<float*>(targets_.get());
  switch (arrays_.problem) {
    case ProblemType::single_label: {
      Tensor weights;
      if (class_weights_) weights = vector(static_cast<float*>(class_weights_.get()), outputs);
      backend.cross_entropy(logits, static_cast<const int32_t*>(targets_.get()), weights,
                            arrays_.label_smoothing, scale, losses, dlogits);
      break;
    }
    case ProblemType::multi_label:
      backend.binary_cross_entropy(logits, matrix(floats, rows, outputs), Tensor{}, scale, losses,
                                   dlogits);
      break;
    case ProblemType::regression:
      backend.squared_error(logits, vector(floats, rows), scale, losses, dlogits);
      break;
  }
}

}  // namespace

std::unique_ptr<Objective> make_classification_objective(const TrainingArrays& arrays) {
  return std::make_unique<ClassificationObjective>(arrays);
}

}  // namespace finetune
