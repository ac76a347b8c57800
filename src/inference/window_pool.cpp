// Adds up windows' logits in order and passes their means to the rows' sink.
#include "inference/window_pool.h"

#include <algorithm>

#include "core/error.h"

namespace finetune {

void WindowPool::expect(std::span<const int64_t> first_window) {
  if (first_window.empty()) {
    FINETUNE_CHECK(!has_windows_);
    return;
  }
  FINETUNE_CHECK(has_windows_ || samples_ == 0);
  has_windows_ = true;
  for (size_t row = 1; row < first_window.size(); ++row) {
    windows_.push_back(first_window[row] - first_window[row - 1]);
  }
}

void WindowPool::add(const PackedBatch& batch, const float* logits) {
  if (!has_windows_) return rows_.add(batch, logits);
  PackedBatch complete;
  std::vector<float> means;
  for (uint32_t sample : batch.indices) {
    FINETUNE_CHECK(sample == samples_++ && !windows_.empty());
    if (summed_ == 0) sums_.assign(outputs_, -0.0);  // -0.0 + x is x, also for x = -0.0
    for (size_t i = 0; i < outputs_; ++i) sums_[i] += double(logits[i]);
    logits += outputs_;
    if (++summed_ < windows_.front()) continue;
    for (double sum : sums_) means.push_back(float(sum / double(summed_)));
    complete.samples.push_back(uint32_t(complete.samples.size()));
    complete.indices.push_back(given_++);
    windows_.pop_front();
    summed_ = 0;
  }
  if (!complete.indices.empty()) rows_.add(complete, means.data());
}

}  // namespace finetune
