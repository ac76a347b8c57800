// Whether the values of a label column are classes, or a column of something else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace finetune {

// 12.50, -3,99, 1 234.56 or $40.13: a number with digits behind its point or comma.
bool is_amount(std::string_view value);

// What is odd about so many rows having these distinct labels.
struct LabelFinding {
  bool is_error = false;  // it cannot be meant: nearly every value an amount of its own
  std::string text;       // behind the column's name; empty: nothing
};
LabelFinding look_at_labels(const std::vector<std::string>& labels, int64_t rows);

}  // namespace finetune
