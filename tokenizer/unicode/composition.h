// Unicode's normalization form C, and characters that cannot be seen.
#pragma once

#include <string>
#include <string_view>

namespace finetune::unicode {

// NFC of Unicode 15.1. Bytes that are not UTF-8 become U+FFFD.
std::string composed(std::string_view text);

// Default_Ignorable_Code_Point of Unicode 15.1, which is shown as nothing, and the control
// characters that are not white space.
bool is_invisible(char32_t c);

}  // namespace finetune::unicode
