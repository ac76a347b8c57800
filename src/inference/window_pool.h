// Window pool: a row's windows become one result before its task sees it.
// The logits of a row are the mean of its windows' logits, in double and in their order.
// Probabilities of one label are then those of the mean of log-probabilities, and the loss of the
// mean is at most the mean of the losses, which training takes.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "tasks/task.h"

namespace finetune {

class WindowPool final : public Evaluation {
 public:
  // Of logits (outputs) a sample. `rows` gets those of rows.
  WindowPool(Evaluation& rows, int64_t outputs) : rows_(rows), outputs_(size_t(outputs)) {}

  // More samples are to come, before the logits of any of them. Those of a set without windows go
  // on as they are; of all sets that are expected one has windows if all have.
  void expect(const SampleSet& set);
  // Samples of rows with windows come in their order.
  void add(const PackedBatch& batch, const float* logits) override;

  Metrics metrics() override { return rows_.metrics(); }
  void write_files(const std::filesystem::path& directory) override {
    rows_.write_files(directory);
  }

 private:
  Evaluation& rows_;
  size_t outputs_;
  bool has_windows_ = false;
  std::deque<int64_t> windows_;  // of each row that is not complete
  std::vector<double> sums_;     // of the first one
  int64_t summed_ = 0;           // so many of its windows
  uint32_t samples_ = 0, given_ = 0;
};

}  // namespace finetune
