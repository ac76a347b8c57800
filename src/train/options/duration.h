// Durations on the command line: "90s", "10m", "1h30m", "2d".
#pragma once

#include <string>
#include <string_view>

namespace finetune {

// In seconds. Whole numbers with units d, h, m, s, each at most once and in this order; where zero
// is a time, "0" as well. Error(usage) naming `option` and showing the syntax; zero where it is
// none and more than a hundred years are refused too.
double parse_duration(std::string_view text, std::string_view option, bool zero = false);

// For people: "0.4 s", "12 s", "3 min", "1 h 20 min".
std::string format_duration(double seconds);

}  // namespace finetune
