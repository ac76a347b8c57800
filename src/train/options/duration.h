// Durations on the command line: "90s", "10m", "1h30m", "2d".
#pragma once

#include <string_view>

namespace finetune {

// In seconds. Whole numbers with units d, h, m, s, each at most once and in this order; where zero
// is a time, "0" as well. Error(usage) naming `option` and showing the syntax; zero where it is
// none and more than a hundred years are refused too.
double parse_duration(std::string_view text, std::string_view option, bool zero = false);

}  // namespace finetune
