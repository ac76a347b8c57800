// Hides words of packed micro-batches, different ones in each epoch, and computes their loss.
#include <algorithm>
#include <vector>

#include "core/error.h"
#include "data/packing.h"
#include "tasks/masked_language/masked_traits.h"
#include "tasks/masked_language/masking.h"

namespace finetune {
namespace {

class MaskedObjective final : public Objective {
 public:
  explicit MaskedObjective(const TrainingArrays& arrays)
      : samples_(arrays.samples), masking_(arrays.masking, arrays.word_kinds) {}

  const SampleView& samples() const override { return samples_; }
  void begin_epoch(int64_t epoch) override { epoch_ = uint32_t(epoch); }

  void complete(PackedBatch& batch) const override {
    FINETUNE_CHECK(batch.fillers == 0);
    std::vector<HiddenPiece> hidden;
    for (size_t b = 0; b < batch.indices.size(); ++b) {
      const int32_t begin = batch.offsets[b];
      const auto ids =
          std::span(batch.ids).subspan(size_t(begin), size_t(batch.offsets[b + 1] - begin));
      masking_.hide(ids, batch.indices[b], epoch_, hidden);
      for (const HiddenPiece& piece : hidden) {
        batch.scored.push_back(begin + piece.place);
        batch.targets.push_back(ids[size_t(piece.place)]);
        ids[size_t(piece.place)] = piece.replacement;
      }
    }
    sort_tokens(batch);
  }

  // At least 1: a batch may have no hidden piece.
  double loss_denominator(std::span<const uint32_t> indices) const override {
    std::vector<HiddenPiece> hidden;
    size_t count = 0;
    for (uint32_t index : indices) {
      masking_.hide(
          samples_.ids.subspan(size_t(samples_.offsets[index]), size_t(samples_.length(index))),
          index, epoch_, hidden);
      count += hidden.size();
    }
    return double(std::max<size_t>(1, count));
  }

  int64_t losses(const DeviceBatch& device) const override { return device.scored(); }
  void reserve(Backend&, int64_t) override {}
  void upload_targets(Backend&, const PackedBatch&) override {}  // they are in the batch

  void loss(Backend& backend, const DeviceBatch& device, Tensor logits, Tensor losses,
            Tensor dlogits) override {
    if (device.scored() == 0) return;
    backend.cross_entropy(logits, device.targets(), {}, 0, device.scored_loss_scale(), losses,
                          dlogits);
  }

 private:
  SampleView samples_;
  Masking masking_;
  uint32_t epoch_ = 0;
};

}  // namespace

std::unique_ptr<Objective> make_masked_objective(const TrainingArrays& arrays) {
  return std::make_unique<MaskedObjective>(arrays);
}

}  // namespace finetune
