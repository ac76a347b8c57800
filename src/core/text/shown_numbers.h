// Numbers as people read them, with few digits.
#pragma once

#include <string>

namespace finetune {

// Writes `digits` significant digits, with an exponent where that is shorter: "0.0123", "7.95e+13".
std::string significant(double value, int digits);
// Three significant digits: "0.612", "78.2", "1520".
std::string three_digits(double value);
// A whole number: "12,345".
std::string with_thousands(double count);

}  // namespace finetune
