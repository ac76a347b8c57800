// Reads the clock or $SOURCE_DATE_EPOCH.
#include "core/clock.h"

#include <cstdlib>
#include <ctime>

#include "core/error.h"

namespace finetune {
namespace {

constexpr int64_t kLatest = 253402300799;  // the end of the year 9999

}  // namespace

bool is_date(double seconds) {
  return seconds >= 0 && seconds <= double(kLatest);
}

int64_t date_now() {
  const char* fixed = std::getenv("SOURCE_DATE_EPOCH");
  if (!fixed || !*fixed) return int64_t(std::time(nullptr));
  const auto seconds = parse_int(fixed);
  if (seconds && is_date(double(*seconds))) return *seconds;
  throw usage_error("SOURCE_DATE_EPOCH=", fixed,
                    ": is not a number of seconds since 1970, from 0 to ", kLatest,
                    "; mend it, or unset it");
}

std::string date_text(int64_t seconds) {
  const auto time = std::time_t(seconds);
  std::tm utc{};
  if (!::gmtime_r(&time, &utc)) return "";  // out of the range of years
  char text[40];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc));
}

}  // namespace finetune
