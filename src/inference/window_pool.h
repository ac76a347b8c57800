// Window pool: combines the results of a row's windows into one result for the task.
// The logits of a row are the mean of its windows' logits, summed in double in their order. For one
// label a row this is the mean of the windows' log-probabilities, normalized; its loss is at most
// the mean of the windows' losses, which training minimizes.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "tasks/evaluator.h"

namespace finetune {

class WindowPool final : public LogitsSink {
 public:
  // `rows` gets the logits (outputs) of each row.
  WindowPool(LogitsSink& rows, int64_t outputs) : rows_(rows), outputs_(size_t(outputs)) {}

  // Announces the samples of a chunk (SampleChunk::first_window) before their logits come. Without
  // windows logits are passed on as they are. Either all chunks have windows or none has.
  void expect(std::span<const int64_t> first_window);
  // Samples of rows with windows must come in their order.
  void add(const PackedBatch& batch, const float* logits) override;

 private:
  LogitsSink& rows_;
  size_t outputs_;
  bool has_windows_ = false;
  std::deque<int64_t> windows_;  // the number of windows of each incomplete row
  std::vector<double> sums_;     // of the first incomplete row's windows
  int64_t summed_ = 0;           // the windows in sums_
  uint32_t samples_ = 0, given_ = 0;
};

}  // namespace finetune
