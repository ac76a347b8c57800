// Reads the clock or $SOURCE_DATE_EPOCH.
#include "core/date.h"

#include <cstdlib>
#include <ctime>

#include "core/text/text.h"

namespace finetune {

int64_t date_now() {
  const char* fixed = std::getenv("SOURCE_DATE_EPOCH");
  const auto seconds = parse_int(fixed ? fixed : "");
  return seconds && *seconds >= 0 ? *seconds : int64_t(std::time(nullptr));
}

std::string date_text(int64_t seconds) {
  const auto time = std::time_t(seconds);
  std::tm utc{};
  if (!::gmtime_r(&time, &utc)) return "";  // out of the range of years
  char text[40];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc));
}

}  // namespace finetune
