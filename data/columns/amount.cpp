// Removes signs and currencies, then decides what points and commas mean.
#include "data/columns/amount.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "core/text/ascii.h"
#include "core/text/text.h"
#include "data/labels.h"

namespace finetune {
namespace {

constexpr size_t kMostBytes = 64;                                          // of an amount
constexpr std::string_view kMinuses[] = {"\xE2\x88\x92", "\xE2\x80\x93"};  // U+2212, U+2013
// No-break spaces of two widths, and the typographic apostrophe (U+2019) of Swiss amounts.
constexpr std::string_view kWideSeparators[] = {"\xC2\xA0", "\xE2\x80\xAF", "\xE2\x80\x99"};
// Dollars and reais, then $, pound, yen; zł, Kč, лв, руб; and U+20A0 to U+20BF, the block of
// currencies.
constexpr std::string_view kCurrencies[] = {"R$",
                                            "US$",
                                            "CA$",
                                            "AU$",
                                            "NZ$",
                                            "HK$",
                                            "A$",
                                            "C$",
                                            "S$",
                                            "$",
                                            "\xC2\xA3",
                                            "\xC2\xA5",
                                            "z\xC5\x82",
                                            "K\xC4\x8D",
                                            "\xD0\xBB\xD0\xB2",
                                            "\xD1\x80\xD1\x83\xD0\xB1"};
constexpr std::string_view kCurrencyBlock = "\xE2\x82";
// Currency words beside an amount. Words for units such as "k" or "Mio" are not accepted.
constexpr std::string_view kCurrencyWords[] = {"eur", "usd", "gbp", "chf",  "kr",   "Kr",
                                               "Fr",  "SFr", "Rs",  "Euro", "euro", "Eur"};
constexpr std::string_view kDebits[] = {"DR", "Dr", "dr"}, kCredits[] = {"CR", "Cr", "cr"};
constexpr std::string_view kUnits[] = {"MIO", "MRD", "BIO", "TSD"};

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool may_stand_beside(std::string_view word) {
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const bool is_code = word.size() == 3 && std::all_of(word.begin(), word.end(), is_upper) &&
                       !is_one_of(word, kUnits);
  return word.empty() || is_code || is_one_of(word, kCurrencyWords) || is_one_of(word, kDebits) ||
         is_one_of(word, kCredits);
}

// Removes letters from the end or the beginning, and returns them.
std::string take_letters(std::string& text, bool at_end) {
  const auto count =
      size_t(at_end ? std::find_if_not(text.rbegin(), text.rend(), is_letter) - text.rbegin()
                    : std::find_if_not(text.begin(), text.end(), is_letter) - text.begin());
  const size_t from = at_end ? text.size() - count : 0;
  std::string letters = text.substr(from, count);
  text = std::string(trim(text.erase(from, count)));
  return letters;
}

// Removes the dashes that stand for no cents: "100,-", "100.--". Returns whether a comma was
// before them.
bool take_no_cents(std::string& text) {
  const size_t point = text.find_last_not_of('-');
  if (point == text.npos || point + 1 == text.size()) return false;
  const bool is_comma = text[point] == ',';
  if (is_comma || text[point] == '.') text.resize(point);
  return is_comma;
}

// Removes one sign from either end. Returns false if the number is negative.
bool take_sign(std::string& text) {
  if (text.empty()) return true;
  const bool is_before = text.front() == '-' || text.front() == '+';
  const bool is_behind = !is_before && (text.back() == '-' || text.back() == '+');
  if (!is_before && !is_behind) return true;
  const bool is_positive = (is_before ? text.front() : text.back()) == '+';
  text = std::string(trim(is_before ? text.substr(1) : text.substr(0, text.size() - 1)));
  return is_positive;
}

// Whether the only separator may separate thousands or decimals: three digits follow it (1.234).
bool is_unsure(std::string_view text) {
  const size_t at = text.find_first_of(".,");
  return at != text.npos && at >= 1 && at <= 3 && text.size() - at == 4 && text[0] != '0' &&
         std::count_if(text.begin(), text.end(), is_digit) == ptrdiff_t(text.size()) - 1;
}

// Returns the position of the decimal separator, or npos.
size_t decimal_separator(std::string_view text, bool comma_decimals) {
  const size_t last = text.find_last_of(".,");
  if (last == text.npos || std::count(text.begin(), text.end(), text[last]) > 1) return text.npos;
  const bool is_thousand = text[last] == (comma_decimals ? '.' : ',') && is_unsure(text);
  return is_thousand ? text.npos : last;
}

// Whether the digits are one group, groups of three, or as in India groups of two and a last three.
bool has_whole_groups(std::string_view whole) {
  std::vector<size_t> sizes{0};
  for (const char c : whole) {
    if (is_digit(c)) {
      ++sizes.back();
    } else {
      if (c != '.' && c != ',' && c != ' ' && c != '\'') return false;
      sizes.push_back(0);
    }
  }
  if (sizes.size() == 1) return true;
  if (sizes.front() == 0 || sizes.front() > 3 || sizes.back() != 3) return false;
  const auto all_have = [&](size_t size) {
    return std::all_of(sizes.begin() + 1, sizes.end() - 1, [&](size_t n) { return n == size; });
  };
  const bool is_indian = sizes.size() > 2 && sizes.front() <= 2 && all_have(2) &&
                         std::count(whole.begin(), whole.end(), ',') + 1 == ptrdiff_t(sizes.size());
  return all_have(3) || is_indian;
}

// Returns digits and at most one point, or an empty string if the text is malformed.
std::string plain_digits(std::string_view text, bool comma_decimals) {
  const size_t point = decimal_separator(text, comma_decimals);
  const std::string_view whole = text.substr(0, point);
  const std::string_view behind = point == text.npos ? "" : text.substr(point + 1);
  if (!has_whole_groups(whole) || !std::all_of(behind.begin(), behind.end(), is_digit)) return "";
  std::string out;
  std::copy_if(whole.begin(), whole.end(), std::back_inserter(out), is_digit);
  return point == text.npos ? out : out + "." + std::string(behind);
}

// An amount without its sign and currency.
struct Bare {
  std::string digits;
  bool is_negative = false;
  bool has_comma_decimals = false;  // "1.000,-": a comma where the cents would be
};

void take_currencies(std::string& text) {
  for (const std::string_view currency : kCurrencies) replace_all(text, currency, "");
  for (size_t at; (at = text.find(kCurrencyBlock)) != text.npos && at + 2 < text.size();) {
    const auto last = uint8_t(text[at + 2]);
    if (last < 0xA0 || last > 0xBF) break;
    text.erase(at, 3);
  }
}

// Removes the point of an abbreviation such as "kr." or "Fr.".
void take_abbreviation(std::string& text) {
  if (text.size() > 1 && text.back() == '.' && is_letter(text[text.size() - 2])) text.pop_back();
}

std::optional<Bare> bare(std::string_view text) {
  std::string rest(text);
  for (const std::string_view minus : kMinuses) replace_all(rest, minus, "-");
  for (const std::string_view separator : kWideSeparators) replace_all(rest, separator, " ");
  take_currencies(rest);
  rest = std::string(trim(rest));
  bool is_negative = rest.size() > 2 && rest.front() == '(' && rest.back() == ')';
  if (is_negative) rest = std::string(trim(rest.substr(1, rest.size() - 2)));
  bool is_comma = take_no_cents(rest);
  bool is_positive = take_sign(rest);
  take_abbreviation(rest);
  const std::string before = take_letters(rest, false), behind = take_letters(rest, true);
  if (!before.empty() && rest.starts_with('.')) rest = std::string(trim(rest.substr(1)));  // "Rs."
  is_comma = take_no_cents(rest) || is_comma;
  if (!may_stand_beside(before) || !may_stand_beside(behind)) return std::nullopt;
  if (is_positive) is_positive = take_sign(rest);
  const bool is_debit = is_one_of(before, kDebits) || is_one_of(behind, kDebits);
  return Bare{std::move(rest), is_negative || !is_positive || is_debit, is_comma};
}

}  // namespace

std::optional<double> amount_of(std::string_view text, bool comma_decimals) {
  text = trim(text);
  if (text.empty() || text.size() > kMostBytes) return std::nullopt;
  if (const auto number = finite_number(text); number && !comma_decimals) return number;
  const std::optional<Bare> found = bare(text);
  if (!found) return std::nullopt;
  if (comma_decimals && !is_unsure(found->digits)) return amount_of(text);
  comma_decimals |= found->has_comma_decimals;
  const std::string digits = plain_digits(found->digits, comma_decimals);
  const auto number = digits.empty() ? std::nullopt : finite_number(digits);
  if (!number) return std::nullopt;
  return found->is_negative ? -*number : *number;
}

Decimals decimals_in(std::string_view text) {
  if (!amount_of(text)) return Decimals::not_shown;
  const std::optional<Bare> found = bare(trim(text));
  if (!found) return Decimals::not_shown;
  if (found->has_comma_decimals) return Decimals::behind_comma;
  const std::string& digits = found->digits;
  const size_t last = digits.find_last_of(".,");
  if (last == digits.npos) return Decimals::not_shown;
  const bool is_point = digits[last] == '.';
  if (is_unsure(digits)) return is_point ? Decimals::unsure_point : Decimals::unsure_comma;
  const bool separates_decimals = decimal_separator(digits, false) == last;
  return is_point == separates_decimals ? Decimals::behind_point : Decimals::behind_comma;
}

}  // namespace finetune
