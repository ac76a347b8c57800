// Unicode's normalization form C, and invisible characters.
#pragma once

#include <string>
#include <string_view>

namespace finetune::unicode {

// NFC of Unicode 15.1. Bytes that are not UTF-8 become U+FFFD.
std::string composed(std::string_view text);

// Default_Ignorable_Code_Point of Unicode 15.1 (displayed as nothing), and control characters other
// than white space.
bool is_invisible(char32_t c);

}  // namespace finetune::unicode
