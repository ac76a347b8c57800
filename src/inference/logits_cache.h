// Logits cache: a sample that comes again in an evaluation or prediction is computed once.
// The logits of a sequence follow from its tokens alone (to their last bits, which other shapes of
// a micro-batch may round otherwise), and bank text repeats itself: a sample with the tokens of an
// earlier one gets that one's logits and is not computed. Memory is bounded: of very many different
// samples the newest are remembered.
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
  explicit LogitsCache(int64_t outputs);  // logits of a sample

  // From here on samples are counted from 0; those taken and not given are forgotten.
  void begin();
  // More samples, in their order. Those to be computed are appended to `distinct`.
  void take(const SampleView& samples, TokenizedSamples& distinct);
  // Logits (count, outputs) of the next `count` of those.
  void computed(const float* logits, int64_t count);
  // All next samples whose logits are known, in order.
  void give(LogitsSink& sink);

  int64_t hits() const { return hits_; }  // samples taken that were not to be computed

 private:
  struct Known {
    std::vector<int32_t> ids;
    uint32_t second = 0;
    std::vector<float> logits;  // empty until computed
  };
  using Entry = std::shared_ptr<Known>;

  size_t outputs_;
  std::vector<Entry> slots_;   // by a hash of the tokens; the newest replaces what was there
  std::deque<Entry> rows_;     // taken and not given, in order
  std::deque<Entry> pending_;  // to be computed, in order
  uint32_t given_ = 0;
  int64_t hits_ = 0;
};

// A line for the log.
std::string describe_cache_hits(int64_t count);

}  // namespace finetune
