// Seconds for measurements, from an arbitrary start.
#pragma once

#include <ctime>

namespace finetune {

// cpu: processor time of all threads of this process. It does not count waiting, so with one thread
// it measures the work even on a busy machine.
enum class Clock { wall, cpu };

inline double seconds_now(Clock clock = Clock::wall) {
  timespec t{};
  ::clock_gettime(clock == Clock::cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

}  // namespace finetune
