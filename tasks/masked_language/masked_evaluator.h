// The evaluator of masked words: loss, perplexity and accuracy.
#pragma once

#include <string>
#include <vector>

#include "tasks/evaluator.h"

namespace finetune {

// Takes ScoredToken (engine/engine.h) instead of logits.
class MaskedEvaluator final : public Evaluator {
 public:
  // `set` must outlive the evaluator.
  MaskedEvaluator(const SampleSet& set, Head head, int64_t max_length)
      : chunks_(set), head_(head), max_length_(max_length) {}

  Head head() const override { return head_; }
  int64_t max_length() const override { return max_length_; }
  std::optional<SampleChunk> next() override { return chunks_.next(); }
  double share() const override { return chunks_.share(); }
  int64_t rows() const override { return chunks_.rows_given(); }
  void add(const PackedBatch& batch, const float* scores) override;
  Metrics metrics() override;
  void write_files(const std::filesystem::path&) override {}  // there are no predictions

 private:
  SampleSetChunks chunks_;
  Head head_;
  int64_t max_length_;
  double loss_ = 0;
  int64_t count_ = 0, first_ = 0, among_five_ = 0;
};

std::vector<std::string> masked_metric_names();

}  // namespace finetune
