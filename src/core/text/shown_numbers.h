// Numbers as people read them, with few digits.
#pragma once

#include <string>

namespace finetune {

// Writes `digits` significant digits, with an exponent where that is shorter: "0.0123", "7.95e+13".
std::string significant(double value, int digits);
// Three significant digits: "0.612", "78.2", "1520".
std::string three_digits(double value);
// At least 0: "12,345", "1,234.5".
std::string with_thousands(double count, int digits = 0);

}  // namespace finetune
