// Quotes CSV values, and recognises values that a spreadsheet would compute.
#include "data/rows/csv_line.h"

namespace finetune {

bool begins_formula(std::string_view value) {
  if (value.empty() || std::string_view("=+-@\t\r").find(value[0]) == std::string_view::npos) {
    return false;
  }
  if (value[0] != '+' && value[0] != '-') return true;
  const std::string_view digits = value.substr(1);  // -12.5, +1,234.56, -1 234,56, -5e-3
  const size_t exponent = digits.find_first_of("eE");
  const auto has_only = [](std::string_view text, std::string_view characters) {
    return text.find_first_of("0123456789") != std::string_view::npos &&
           text.find_first_not_of(characters) == std::string_view::npos;
  };
  if (!has_only(digits.substr(0, exponent), "0123456789.,' ")) return true;
  if (exponent == std::string_view::npos) return false;
  std::string_view power = digits.substr(exponent + 1);
  if (power.starts_with('-') || power.starts_with('+')) power.remove_prefix(1);
  return !has_only(power, "0123456789");
}

void append_csv_value(std::string_view value, std::string& line, bool spreadsheet_safe) {
  const std::string_view before = spreadsheet_safe && begins_formula(value) ? "'" : "";
  if (value.find_first_of(",\"\r\n") == std::string_view::npos) {
    line += before;
    line += value;
    return;
  }
  line += '"';
  line += before;
  for (char c : value) {
    if (c == '"') line += '"';
    line += c;
  }
  line += '"';
}

}  // namespace finetune
