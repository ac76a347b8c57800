// Tells amounts and nearly unique values from classes.
#include "data/columns/label_column.h"

#include <algorithm>

#include "core/text/ascii.h"
#include "core/text/counted.h"
#include "core/text/text.h"

namespace finetune {
namespace {

// Fewer than kFewLabels labels are not judged. kManyAmounts different amounts are hardly grades.
constexpr int64_t kFewLabels = 20, kManyAmounts = 100;
// The fewest rows per label, on average, with which amounts and other classes can be learnt.
constexpr int64_t kRowsOfAmount = 4, kRowsOfClass = 2;
constexpr double kNearlyAll = 0.9;

// Whether `c` may be part of a sign, bracket or currency ("EUR"). Lower-case letters are words.
bool may_stand_around(char c) {
  return !is_digit(c) && !(c >= 'a' && c <= 'z');
}

// Removes a sign and a currency before or behind the digits.
std::string_view digits_of(std::string_view value) {
  constexpr size_t kMostAround = 4;  // bytes
  size_t begin = 0, end = value.size();
  while (begin < end && begin < kMostAround && may_stand_around(value[begin])) ++begin;
  for (size_t n = 0; end > begin && n < kMostAround && may_stand_around(value[end - 1]); ++n) --end;
  return value.substr(begin, end - begin);
}

}  // namespace

bool is_amount(std::string_view value) {
  const std::string_view text = digits_of(trim(value));
  const size_t point = text.find_last_of(".,");
  if (text.empty() || !is_digit(text.front()) || point == text.npos) return false;
  const std::string_view behind = text.substr(point + 1);
  const bool is_fraction = !behind.empty() && std::all_of(behind.begin(), behind.end(), is_digit);
  // Thousands and decimals have different separators: 25.11.2026 and 1.2.3 are not amounts.
  const char mark = text[point];
  return is_fraction && std::all_of(text.begin(), text.begin() + ptrdiff_t(point), [&](char c) {
           return is_digit(c) || (c != mark && (c == '.' || c == ',' || c == ' ' || c == '\''));
         });
}

LabelFinding look_at_labels(const std::vector<std::string>& labels, int64_t rows) {
  const auto count = int64_t(labels.size());
  if (count < kFewLabels) return {};
  const auto amounts = std::count_if(labels.begin(), labels.end(), is_amount);
  const bool are_amounts = double(amounts) >= kNearlyAll * double(count);
  const std::string found = concat("has ", count, " different values in ", counted(rows, "row"));
  if (are_amounts && count * kRowsOfAmount > rows) {
    return {true, concat(found, ", nearly all of them numbers such as ", in_quotes(labels[0]),
                         ": amounts are not classes; use --regression, or choose another "
                         "column with --label-column")};
  }
  if (are_amounts && count >= kManyAmounts) {
    return {false, concat(found, ", nearly all of them numbers such as ", in_quotes(labels[0]),
                          ": each is a class of its own; --regression learns numbers")};
  }
  if (count * kRowsOfClass > rows) {
    return {false, concat(found,
                          ": each is a class of its own, and most have a single row; is it "
                          "the column of the label?")};
  }
  return {};
}

}  // namespace finetune
