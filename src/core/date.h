// The date for files and results: UTC, in seconds.
#pragma once

#include <cstdint>
#include <string>

namespace finetune {

// Seconds since 1970. $SOURCE_DATE_EPOCH, if it is set and not empty, replaces the current time, so
// that builds and tests are reproducible (reproducible-builds.org). Error(usage) if it is not a
// number of seconds up to the year 9999.
int64_t date_now();
// ISO 8601: 2026-11-27T08:55:00Z.
std::string date_text(int64_t seconds);

}  // namespace finetune
