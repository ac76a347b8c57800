// A timer of how long something has been waited for, by one who looks often.
#pragma once

#include <algorithm>

#include "core/clock.h"

namespace finetune {

class WaitingTime {
 public:
  // Seconds of the wait until now. Who was stopped, or had no processor, has not waited all the
  // time between two looks: a second of it at the most.
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
