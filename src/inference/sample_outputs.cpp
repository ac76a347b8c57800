// Gives samples to a dispatcher and collects their outputs.
#include "inference/sample_outputs.h"

#include <algorithm>

namespace finetune {
namespace {

class OutputsOfSamples final : public Evaluator {
 public:
  OutputsOfSamples(const SampleView& samples, Head head) : samples_(samples), head_(head) {
    outputs.resize(size_t(samples.size() * head.outputs));
  }

  Head head() const override { return head_; }
  int64_t max_length() const override { return samples_.longest(); }
  std::optional<SampleChunk> next() override {
    if (given_) return {};
    given_ = true;
    return SampleChunk{samples_};
  }
  double share() const override { return given_ ? 1 : 0; }
  int64_t rows() const override { return samples_.size(); }
  Metrics metrics() override { return {}; }
  void write_files(const std::filesystem::path&) override {}
  void add(const PackedBatch& batch, const float* logits) override {
    const auto width = size_t(head_.outputs);
    for (size_t b = 0; b < batch.indices.size(); ++b) {
      std::copy_n(logits + b * width, width, outputs.begin() + int64_t(batch.indices[b] * width));
    }
  }

  std::vector<float> outputs;

 private:
  const SampleView& samples_;
  Head head_;
  bool given_ = false;
};

}  // namespace

std::vector<float> sample_outputs(BatchDispatcher& dispatcher, const SampleView& samples, Head head,
                                  int64_t tokens, const std::function<bool(double)>& poll) {
  OutputsOfSamples evaluator(samples, head);
  const bool is_whole = dispatcher.evaluate(evaluator, tokens, poll).has_value();
  dispatcher.done();
  return is_whole ? std::move(evaluator.outputs) : std::vector<float>();
}

}  // namespace finetune
