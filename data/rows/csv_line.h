// Writes lines of CSV files (RFC 4180).
#pragma once

#include <string>
#include <string_view>

namespace finetune {

// Whether a spreadsheet would compute the cell: it begins with = + - @, a tab or a carriage return
// and is not a number.
bool begins_formula(std::string_view value);

// Appends a value, quoted if it holds a comma, quote or line break. With `spreadsheet_safe` a value
// that begins a formula gets an apostrophe in front.
void append_csv_value(std::string_view value, std::string& line, bool spreadsheet_safe = false);

// Appends a row with its line end.
template <typename Values>
void append_csv_row(const Values& values, std::string& out, bool spreadsheet_safe = false) {
  bool first = true;
  for (const auto& value : values) {
    if (!first) out += ',';
    append_csv_value(value, out, spreadsheet_safe);
    first = false;
  }
  out += '\n';
}

}  // namespace finetune
