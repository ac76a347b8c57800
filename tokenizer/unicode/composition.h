// Unicode's normalization form C, and invisible characters.
#pragma once

#include <string>
#include <string_view>

namespace finetune::unicode {

// NFC of Unicode 15.1. Bytes that are not UTF-8 become U+FFFD.
std::string composed(std::string_view text);

// Returns the character that two compose, or 0.
char32_t composition_of(char32_t first, char32_t second);

// Default_Ignorable_Code_Point of Unicode 15.1 (displayed as nothing), and control characters other
// than white space.
bool is_invisible(char32_t c);

}  // namespace finetune::unicode
