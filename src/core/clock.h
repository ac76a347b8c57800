// Seconds for measurements, and the date for files and results.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

namespace finetune {

// Seconds from an arbitrary start. cpu: processor time of all threads of this process. It does not
// count waiting, so with one thread it measures the work even on a busy machine.
enum class Clock { wall, cpu };

inline double seconds_now(Clock clock = Clock::wall) {
  timespec t{};
  ::clock_gettime(clock == Clock::cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// The date, UTC, in seconds since 1970. $SOURCE_DATE_EPOCH, if it is set and not empty, replaces
// the current time, so that builds and tests are reproducible (reproducible-builds.org).
// Error(usage) if it is not a number of seconds up to the year 9999.
int64_t date_now();
// Whether a date has a year of four digits: 1970 to 9999.
bool is_date(double seconds);
// ISO 8601: 2026-11-27T08:55:00Z.
std::string date_text(int64_t seconds);

}  // namespace finetune
