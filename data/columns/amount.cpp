// Takes signs and currencies off, then decides what points and commas mean.
#include "data/columns/amount.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/text/text.h"
#include "data/labels.h"

namespace finetune {
namespace {

constexpr size_t kMostBytes = 64, kMostLetters = 3;  // of an amount; of a currency's code
constexpr std::string_view kMinuses[] = {"\xE2\x88\x92", "\xE2\x80\x93"};  // U+2212, U+2013
// No-break spaces of two widths, and the apostrophe of Swiss amounts as typesetters have it.
constexpr std::string_view kWideSeparators[] = {"\xC2\xA0", "\xE2\x80\xAF", "\xE2\x80\x99"};
constexpr std::string_view kCurrencies[] = {"$", "\xE2\x82\xAC", "\xC2\xA3", "\xC2\xA5"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at; (at = text.find(from)) != text.npos;) text.replace(at, from.size(), to);
}

// Takes letters off the end, or the beginning, and returns them.
std::string take_letters(std::string& text, bool at_end) {
  const auto count =
      size_t(at_end ? std::find_if_not(text.rbegin(), text.rend(), is_letter) - text.rbegin()
                    : std::find_if_not(text.begin(), text.end(), is_letter) - text.begin());
  const size_t from = at_end ? text.size() - count : 0;
  std::string letters = text.substr(from, count);
  text = std::string(trim(text.erase(from, count)));
  return letters;
}

// Takes the dashes off that stand for no cents: "100,-", "100.--".
void take_no_cents(std::string& text) {
  const size_t point = text.find_last_not_of('-');
  if (point == text.npos || point + 1 == text.size()) return;
  if (text[point] == ',' || text[point] == '.') text.resize(point);
}

// Takes one sign off either end. Returns false if the number is negative.
bool take_sign(std::string& text) {
  if (text.empty()) return true;
  const bool is_before = text.front() == '-' || text.front() == '+';
  const bool is_behind = !is_before && (text.back() == '-' || text.back() == '+');
  if (!is_before && !is_behind) return true;
  const bool is_positive = (is_before ? text.front() : text.back()) == '+';
  text = std::string(trim(is_before ? text.substr(1) : text.substr(0, text.size() - 1)));
  return is_positive;
}

// Digits and at most one point, or an empty string. Groups of thousands have three digits.
std::string plain_digits(const std::string& text) {
  const size_t last = text.find_last_of(".,");
  size_t point = last;
  if (last != text.npos) {
    const auto times = std::count(text.begin(), text.end(), text[last]);
    const bool is_thousand = text[last] == ',' && text.size() - last == 4 && last <= 3 &&
                             text.find('.') == text.npos && text[0] != '0';
    if (times > 1 || is_thousand) point = text.npos;
  }
  std::string out;
  size_t group = 0;  // digits since the last separator
  bool is_grouped = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_digit(c)) {
      out += c;
      ++group;
      continue;
    }
    const bool is_separator = c == '.' || c == ',' || c == ' ' || c == '\'';
    if (!is_separator || (i > point && point != text.npos)) return "";
    if (is_grouped ? group != 3 : i != point && (group == 0 || group > 3)) return "";
    if (i == point)
      out += '.';
    else
      is_grouped = true;
    group = 0;
  }
  return is_grouped && point == text.npos && group != 3 ? "" : out;
}

}  // namespace

std::optional<double> amount_of(std::string_view text) {
  text = trim(text);
  if (text.empty() || text.size() > kMostBytes) return std::nullopt;
  if (const auto number = finite_number(text)) return number;
  std::string rest(text);
  for (const std::string_view minus : kMinuses) replace_all(rest, minus, "-");
  for (const std::string_view separator : kWideSeparators) replace_all(rest, separator, " ");
  for (const std::string_view currency : kCurrencies) replace_all(rest, currency, "");
  rest = std::string(trim(rest));
  bool is_negative = rest.size() > 2 && rest.front() == '(' && rest.back() == ')';
  if (is_negative) rest = std::string(trim(rest.substr(1, rest.size() - 2)));
  take_no_cents(rest);
  bool is_positive = take_sign(rest);
  const std::string before = take_letters(rest, false), behind = take_letters(rest, true);
  if (!before.empty() && rest.starts_with('.')) rest = std::string(trim(rest.substr(1)));  // "Rs."
  take_no_cents(rest);
  if (before.size() > kMostLetters || behind.size() > kMostLetters) return std::nullopt;
  if (is_positive) is_positive = take_sign(rest);
  is_negative = is_negative || !is_positive || behind == "DR" || behind == "Dr";
  const std::string digits = plain_digits(rest);
  const auto number = digits.empty() ? std::nullopt : finite_number(digits);
  if (!number) return std::nullopt;
  return is_negative ? -*number : *number;
}

}  // namespace finetune
