// Sets of code points as text: hexadecimal ranges with spaces between them, "41-5A 61-7A AA".
#pragma once

#include <cstdlib>

namespace finetune::unicode {

// Calls take(c) for every code point.
template <typename Take>
void for_each_in_ranges(const char* ranges, Take&& take) {
  while (*ranges != '\0') {
    char* behind = nullptr;
    const unsigned long first = std::strtoul(ranges, &behind, 16);
    const unsigned long last = *behind == '-' ? std::strtoul(behind + 1, &behind, 16) : first;
    for (unsigned long c = first; c <= last; ++c) take(char32_t(c));
    ranges = *behind == ' ' ? behind + 1 : behind;
  }
}

constexpr const char* kWhiteSpaceRanges = "9-D 20 85 A0 1680 2000-200A 2028-2029 202F 205F 3000";

}  // namespace finetune::unicode
