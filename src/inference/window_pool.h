// Window pool: a row's windows become one result before its task sees it.
// The logits of a row are the mean of its windows' logits, in double and in their order.
// Probabilities of one label are then those of the mean of log-probabilities, and the loss of the
// mean is at most the mean of the losses, which training takes.
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

  // Announces the samples of a chunk before the logits of any of them: SampleChunk::first_window.
  // Without windows logits are passed on as they are. Either all chunks have windows or none has.
  void expect(std::span<const int64_t> first_window);
  // Samples of rows with windows must come in their order.
  void add(const PackedBatch& batch, const float* logits) override;

 private:
  LogitsSink& rows_;
  size_t outputs_;
  bool has_windows_ = false;
  std::deque<int64_t> windows_;  // of each row that is not complete: their number
  std::vector<double> sums_;     // of the first one
  int64_t summed_ = 0;           // windows of that row
  uint32_t samples_ = 0, given_ = 0;
};

}  // namespace finetune
