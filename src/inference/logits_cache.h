// Logits cache: computes a sample that repeats in an evaluation or prediction only once.
// The logits of a sequence depend on its tokens alone (the last bits also on the shape of its
// micro-batch), and bank texts repeat. So a sample with the tokens of an earlier one gets the
// earlier one's logits and is not computed. Memory is bounded: if there are very many different
// samples, the cache keeps the newest.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/numeric/packed_batch.h"
#include "tasks/evaluator.h"

namespace finetune {

class LogitsCache {
 public:
  explicit LogitsCache(int64_t outputs);  // the number of logits of a sample

  // Counts samples from 0 again, and forgets those taken but not given.
  void begin();
  // Takes the next samples. Appends those that must be computed to `distinct`.
  void take(const SampleView& samples, TokenizedSamples& distinct);
  // Takes the logits (count, outputs) of the next `count` samples of `distinct`.
  void computed(const float* logits, int64_t count);
  // Gives `sink` the next samples, in order, up to the first whose logits are not known yet.
  void give(LogitsSink& sink);

  int64_t hits() const { return hits_; }  // samples that were not computed again

 private:
  struct Known {
    std::vector<int32_t> ids;
    uint32_t second = 0;
    std::vector<float> logits;  // empty until computed
  };
  using Entry = std::shared_ptr<Known>;

  size_t outputs_;
  std::vector<Entry> slots_;   // by a hash of the tokens; a new entry replaces the old one
  std::deque<Entry> rows_;     // taken and not given, in order
  std::deque<Entry> pending_;  // to be computed, in order
  uint32_t given_ = 0;
  int64_t hits_ = 0;
};

// A log line.
std::string describe_cache_hits(int64_t count);

}  // namespace finetune
