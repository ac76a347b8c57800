// Parses durations such as "90s" and "1h30m".
#include "train/options/duration.h"

#include <array>
#include <utility>

#include "core/error.h"

namespace finetune {

double parse_duration(std::string_view text, std::string_view option, bool zero) {
  if (zero && text == "0") return 0;
  constexpr std::array<std::pair<char, double>, 4> units{
      {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}}};
  constexpr double hundred_years = 86400.0 * 36525;
  double seconds = 0;
  size_t next_unit = 0;
  std::string_view rest = text;
  bool valid = !rest.empty();
  while (valid && !rest.empty()) {
    size_t digits = rest.find_first_not_of("0123456789");
    valid = digits != std::string_view::npos && digits > 0 && digits <= 9;
    if (!valid) break;
    while (next_unit < units.size() && units[next_unit].first != rest[digits]) ++next_unit;
    valid = next_unit < units.size();
    if (!valid) break;
    seconds += double(*parse_int(rest.substr(0, digits))) * units[next_unit++].second;
    rest.remove_prefix(digits + 1);
  }
  if (!valid || (seconds == 0 && !zero) || seconds > hundred_years) {
    throw usage_error(option, " ", in_quotes(text), ": write a time such as 90s, 10m or 1h30m");
  }
  return seconds;
}

std::string format_duration(double seconds) {
  if (seconds < 60) return format_fixed(seconds, seconds < 10 ? 1 : 0) + " s";
  const int64_t minutes = int64_t(seconds / 60 + 0.5);
  if (minutes < 60) return concat(minutes, " min");
  return concat(minutes / 60, " h ", minutes % 60, " min");
}

}  // namespace finetune
