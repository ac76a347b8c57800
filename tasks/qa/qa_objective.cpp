// Uploads answer spans, and computes the span loss.
#include <vector>

#include "core/error.h"
#include "tasks/qa/qa_traits.h"

namespace finetune {
namespace {

class QaObjective final : public Objective {
 public:
  explicit QaObjective(const TrainingArrays& arrays)
      : samples_(arrays.samples), starts_(arrays.labels), ends_(arrays.ends) {
    FINETUNE_CHECK(int64_t(starts_.size()) == samples_.size());
    FINETUNE_CHECK(int64_t(ends_.size()) == samples_.size());
  }

  const SampleView& samples() const override { return samples_; }
  double loss_denominator(std::span<const uint32_t> indices) const override {
    return double(indices.size());
  }

  void reserve(Backend& backend, int64_t max_sequences) override {
    positions_ = backend.allocate(size_t(2 * max_sequences) * sizeof(int32_t));
    host_positions_.reserve(size_t(2 * max_sequences));
    max_sequences_ = max_sequences;
  }

  void upload_targets(Backend& backend, const PackedBatch& batch) override {
    const size_t count = size_t(batch.sequences());
    FINETUNE_CHECK(int64_t(count) <= max_sequences_);
    host_positions_.resize(2 * count);
    for (size_t b = 0; b < count; ++b) {
      host_positions_[b] = starts_[batch.indices[b]];
      host_positions_[count + b] = ends_[batch.indices[b]];
    }
    backend.upload(positions_.get(), host_positions_.data(), 2 * count * sizeof(int32_t));
  }

  void loss(Backend& backend, const DeviceBatch& device, Tensor logits, Tensor losses,
            Tensor dlogits) override {
    const auto* positions = static_cast<const int32_t*>(positions_.get());
    backend.span_cross_entropy(logits, device.segments(), positions, positions + device.sequences(),
                               device.loss_scale(), losses, dlogits);
  }

 private:
  SampleView samples_;
  std::span<const int32_t> starts_, ends_;
  std::shared_ptr<void> positions_;  // (2, B) int32: starts, ends
  std::vector<int32_t> host_positions_;
  int64_t max_sequences_ = 0;
};

}  // namespace

std::unique_ptr<Objective> make_qa_objective(const TrainingArrays& arrays) {
  return std::make_unique<QaObjective>(arrays);
}

}  // namespace finetune
