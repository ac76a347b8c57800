// Spinning: a thread looks for what others do for a while before it sleeps.
// To wake takes it some ten microseconds, on a virtual machine a hundred, and many operations of a
// step take no longer.
#pragma once

#include <sched.h>

#include "core/clock.h"

namespace finetune {

// Looks for some ten microseconds, then for about a millisecond, offering the core to others
// between two looks. That is quick while all wait, but where somebody else computes a whole time
// slice may pass, and a sleeper would have come back earlier: then it sleeps, this time and many
// more. (OpenMP's teams look for milliseconds and offer nothing: on a machine that others share, or
// with more threads than cores, they take the core from the very thread that they wait for.)
class Spin {
 public:
  // core_for_each: whether all that may look have a core of their own. Else nobody looks without
  // offering it.
  explicit Spin(bool core_for_each = true) : looks_(core_for_each ? kLooks : 0) {}

  // Whether what is looked for has come.
  template <typename Done>
  bool until(const Done& done) {
    for (int i = 0; i < looks_; ++i) {
      if (done()) return true;
      __builtin_ia32_pause();
    }
    if (sleeps_left_ > 0) {
      --sleeps_left_;
      return done();
    }
    const double end = seconds_now() + kLongest;
    for (double last = end - kLongest; last < end;) {
      if (done()) return true;
      ::sched_yield();
      const double now = seconds_now();
      if (now - last > kLongYield) {
        sleeps_left_ = kSleeps;
        return done();
      }
      last = now;
    }
    return false;
  }

 private:
  static constexpr int kLooks = 400;
  static constexpr int kSleeps = 300;
  static constexpr double kLongest = 1e-3, kLongYield = 500e-6;  // seconds
  int looks_;
  int sleeps_left_ = 0;
};

}  // namespace finetune
