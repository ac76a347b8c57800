// How well hidden words are told: loss, perplexity, accuracy.
#pragma once

#include <string>
#include <vector>

#include "tasks/task.h"

namespace finetune {

// Takes ScoredToken (engine/engine.h) in place of logits, samples in order.
class MaskedEvaluation final : public Evaluation {
 public:
  void add(const PackedBatch& batch, const float* scores) override;
  Metrics metrics() override;
  void write_files(const std::filesystem::path&) override {}  // there are no predictions

 private:
  double loss_ = 0;
  int64_t count_ = 0, first_ = 0, among_five_ = 0;
};

std::vector<std::string> masked_metric_names();

}  // namespace finetune
