// Waiting: a thread polls for a while before it sleeps, and measures how long it has waited.
#pragma once

#include <sched.h>

#include <algorithm>

#include "core/clock.h"

namespace finetune {

// Waking takes about ten microseconds, on a virtual machine a hundred, and many operations of a
// step are no longer than that. Polls for about ten microseconds, then for about a millisecond with
// a yield between two polls. That is fast while all threads wait. If another process computes, a
// yield can take a whole time slice, longer than waking: then it sleeps, now and for many later
// waits. (OpenMP's teams poll for milliseconds without yielding: on a shared machine, or with more
// threads than cores, they take the core from the thread that they wait for.)
class Spin {
 public:
  // core_for_each: whether all polling threads have a core of their own. If not, every poll yields.
  explicit Spin(bool core_for_each = true) : looks_(core_for_each ? kLooks : 0) {}

  // Returns whether done() became true.
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

// How long a thread has waited, if it checks often.
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
