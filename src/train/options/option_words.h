// Words as values of options, read by our own rules: the same for the command line and for files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/text/text.h"
#include "train/options/options.h"

namespace finetune {

// The number behind an option's member, also where it may be absent.
template <typename Value>
struct OptionNumber {
  using Type = Value;
};
template <typename Value>
struct OptionNumber<std::optional<Value>> {
  using Type = Value;
};

// No locale, no 0x10, no 1e400.
template <typename Number>
std::optional<Number> number_in_word(const std::string& word) {
  if constexpr (std::is_same_v<Number, double>) {
    return parse_double(word);
  } else {
    const auto number = parse_int(word);  // config.toml has signed integers
    if (!number || (std::is_same_v<Number, uint64_t> && *number < 0)) return std::nullopt;
    return Number(*number);
  }
}

template <typename Number>
constexpr const char* kNumberWords =
    std::is_same_v<Number, double>    ? "number"
    : std::is_same_v<Number, int64_t> ? "whole number"
                                      : "whole number from 0 to 9223372036854775807";

// Each makes the word the member's value, or says what is wrong with it; empty: nothing. A number's
// range is not looked at (require_inside).
template <typename Value>
std::string take_number(const OptionInfo& info, const std::string& word, Value& value) {
  using Number = typename OptionNumber<Value>::Type;
  auto number = info.bare != 0 && word.empty() ? std::optional(Number(info.bare))
                                               : number_in_word<Number>(word);
  const bool is_choice = !info.choices.empty() && word == info.choices;
  if (!number && !is_choice) {
    return concat(in_quotes(word), " is not a ", kNumberWords<Number>,
                  info.choices.empty() ? "" : " or ", info.choices);
  }
  value = is_choice ? Value() : Value(*number);
  return "";
}

// What is wrong with a word as an option of text or of choices.
std::string fault_of_word(const OptionInfo& info, const std::string& word);

enum class OptionKind { flag, number, whole_number, text, list };
// Of an option of train.
OptionKind kind_of_option(std::string_view name);

// A number as short as it reads back, with an exponent as people write it: 1e-4, 0.001, 3e6.
std::string number_word(double value);
// One spelling of a number, for names and for telling values apart: 0.0001, 1e-04 and 1e-4 are
// "1e-4". Any other word stays as it is.
std::string spelled_value(OptionKind kind, const std::string& word);

// Sets the option of that name as the command line would with these words; of an option of one
// value there is one. What is wrong with them, ranges included, or empty.
std::string set_option(TrainOptions& options, std::string_view name,
                       const std::vector<std::string>& words);

}  // namespace finetune
