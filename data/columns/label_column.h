// Whether a label column holds classes, or something else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace finetune {

// 12.50, -3,99, 1 234.56 or $40.13: a number with digits after its point or comma.
bool is_amount(std::string_view value);

// What is odd about these distinct labels, given the number of rows.
struct LabelFinding {
  bool is_error = false;  // surely a mistake: nearly every value is a different amount
  std::string text;       // follows the column's name; empty: nothing is odd
};
LabelFinding look_at_labels(const std::vector<std::string>& labels, int64_t rows);

}  // namespace finetune
