// Seconds for measurements, from an arbitrary start.
#pragma once

#include <ctime>

namespace finetune {

// cpu: processor time of this process, all threads together. On a machine that others use it says
// what one thread would take on its own; waiting counts as nothing.
enum class Clock { wall, cpu };

inline double seconds_now(Clock clock = Clock::wall) {
  timespec t{};
  ::clock_gettime(clock == Clock::cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

}  // namespace finetune
