// Backend::start_download and finish_download for backends that use host memory. It keeps the
// copies until they are finished.
#pragma once

#include <cstring>
#include <deque>
#include <vector>

#include "ops/backend.h"

namespace finetune {

class QueuedDownloads {
 public:
  void start_download(const void* from, size_t bytes) {
    FINETUNE_CHECK(bytes <= kMostQueuedBytes && int64_t(copies_.size()) < kMostQueued);
    const char* begin = static_cast<const char*>(from);
    copies_.emplace_back(begin, begin + bytes);
  }
  void finish_download(void* host, size_t bytes) {
    FINETUNE_CHECK(!copies_.empty() && copies_.front().size() == bytes);
    std::memcpy(host, copies_.front().data(), bytes);
    copies_.pop_front();
  }

 private:
  std::deque<std::vector<char>> copies_;
};

}  // namespace finetune
