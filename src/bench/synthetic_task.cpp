#include "bench/synthetic_task.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/philox.h"

namespace finetune {
namespace {

constexpr int64_t kClasses = 24;
constexpr PhiloxKey kKey = {0x73796E74, 0x68657469};

class SyntheticTask : public Task {
 public:
  SyntheticTask(TaskKind kind, const LengthDistribution& lengths, int64_t count,
                int64_t vocabulary_size)
      : kind_(kind), longest_(lengths.longest) {
    TokenizedSamples& samples = set_.samples;
    set_.examples = count;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t length = lengths.draw(uint64_t(i));
      for (int64_t t = 0; t < length; ++t) {
        // Rank r has probability close to 1 / r: the logarithm of the rank is uniform.
        const double u = unit_interval(bits(i, t));
        const double rank = std::exp(u * std::log(double(vocabulary_size)));
        samples.ids.push_back(int32_t(std::min(int64_t(rank), vocabulary_size) - 1));
      }
      samples.offsets.push_back(int64_t(samples.ids.size()));
      samples.second.push_back(uint32_t(kind == TaskKind::qa ? length / 10 : length));
    }
  }

  TaskKind kind() const override { return kind_; }
  Head head() const override {
    return kind_ == TaskKind::qa ? Head{HeadKind::token, 2} : Head{HeadKind::sequence, kClasses};
  }
  bool keeps_head() const override { return false; }
  int64_t max_length() const override { return longest_; }
  const SampleSet& train_set() const override { return set_; }
  const SampleSet* eval_set() const override { return nullptr; }
  std::vector<std::string> describe() const override { return {}; }
  double loss_denominator(std::span<const uint32_t> indices) const override {
    return double(indices.size());
  }

  void reserve(Backend& backend, int64_t max_sequences) override {
    targets_ = backend.allocate(size_t(2 * max_sequences) * sizeof(int32_t));
    host_.reserve(size_t(2 * max_sequences));
  }

  void loss(Backend& backend, const PackedBatch& batch, const DeviceBatch& device, Tensor logits,
            float scale, Tensor losses, Tensor dlogits) override {
    const size_t count = size_t(batch.sequences());
    host_.assign(2 * count, 0);
    for (size_t b = 0; b < count; ++b) {
      const uint32_t index = batch.indices[b];
      const int64_t values = kind_ == TaskKind::qa ? set_.samples.length(int64_t(index)) : kClasses;
      host_[b] = host_[count + b] = int32_t(bits(index, -1) % uint32_t(values));
    }
    int32_t* targets = static_cast<int32_t*>(targets_.get());
    backend.upload(targets, host_.data(), host_.size() * sizeof(int32_t));
    if (kind_ == TaskKind::qa) {
      backend.span_cross_entropy(logits, device.segments(), targets, targets + count, scale, losses,
                                 dlogits);
    } else {
      backend.cross_entropy(logits, targets, {}, 0, scale, losses, dlogits);
    }
  }

  std::unique_ptr<Evaluation> start_evaluation() override {
    throw internal_error("a benchmark has nothing to evaluate");
  }
  std::string best_metric() const override { return ""; }
  bool larger_is_better(const std::string&) const override { return false; }
  std::vector<std::string> metric_names() const override { return {}; }
  std::string config_json() const override { return "{}"; }

 private:
  static uint32_t bits(int64_t sample, int64_t place) {
    return philox(kKey, {uint32_t(sample), uint32_t(place), 0, 0})[0];
  }

  TaskKind kind_;
  int64_t longest_;
  SampleSet set_;
  std::shared_ptr<void> targets_;  // (2, B) int32: labels, or starts and ends
  std::vector<int32_t> host_;
};

}  // namespace

std::unique_ptr<Task> make_synthetic_task(TaskKind kind, const LengthDistribution& lengths,
                                          int64_t count, int64_t vocabulary_size) {
  return std::make_unique<SyntheticTask>(kind, lengths, count, vocabulary_size);
}

}  // namespace finetune
