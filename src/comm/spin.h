// Looking for what other processes do, for some ten microseconds, before a process sleeps.
#pragma once

#include <sched.h>

#include "comm/placement.h"
#include "core/clock.h"

namespace finetune {

class Spin {
 public:
  // processes: of this host. Where they outnumber its cores, who looks takes the core from the one
  // that it looks for: it offers the core between its looks. That is quick while all wait, but
  // where somebody computes, a whole time slice may pass, and a sleeper would have come back
  // earlier: then it sleeps, this time and many more.
  explicit Spin(int processes) : core_for_each_(processes <= host_cores()) {}

  // Whether what is looked for has come.
  template <typename Done>
  bool until(Done done) {
    if (core_for_each_) {
      for (int i = 0; i < kLooks; ++i) {
        if (done()) return true;
        __builtin_ia32_pause();
      }
      return false;
    }
    if (sleeps_left_ > 0) {
      --sleeps_left_;
      return done();
    }
    double last = seconds_now();
    for (int i = 0; i < kYields; ++i) {
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
  static constexpr int kYields = 50;
  static constexpr int kSleeps = 1000;
  static constexpr double kLongYield = 100e-6;
  bool core_for_each_;
  int sleeps_left_ = 0;
};

}  // namespace finetune
