// Looking for what other processes do, for some ten microseconds, before a process sleeps.
#pragma once

#include <sched.h>

#include "comm/placement.h"

namespace finetune {

class Spin {
 public:
  // processes: of this host. Where they outnumber its cores, who looks takes the core from the one
  // that it looks for: it offers the core between its looks.
  explicit Spin(int processes) : core_for_each_(processes <= host_cores()) {}

  // Whether what is looked for has come.
  template <typename Done>
  bool until(Done done) const {
    const int looks = core_for_each_ ? kLooks : kYields;
    for (int i = 0; i < looks; ++i) {
      if (done()) return true;
      if (core_for_each_) {
        __builtin_ia32_pause();
      } else {
        ::sched_yield();
      }
    }
    return false;
  }

 private:
  static constexpr int kLooks = 400;
  static constexpr int kYields = 50;
  bool core_for_each_;
};

}  // namespace finetune
