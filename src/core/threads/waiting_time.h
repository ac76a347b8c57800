// Measures how long a thread has waited, if it checks often.
#pragma once

#include <algorithm>

#include "core/clock.h"

namespace finetune {

class WaitingTime {
 public:
  // Seconds of the wait so far. Each check adds at most one second, because a process that was
  // stopped or had no processor was not waiting all the time.
  double look() {
    const double now = seconds_now();
    waited_ += std::min(now - last_look_, kLongestSlice);
    last_look_ = now;
    return waited_;
  }
  void begin_again() {
    last_look_ = seconds_now();
    waited_ = 0;
  }

 private:
  static constexpr double kLongestSlice = 1;
  double last_look_ = seconds_now(), waited_ = 0;
};

}  // namespace finetune
