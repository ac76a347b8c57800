// Converts words to values of options, also durations, for the command line and for files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/text/text.h"
#include "train/options/option_row.h"
#include "train/options/train_options.h"

namespace finetune {

// Parses a number in decimal: no locale, no 0x10, no 1e400.
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

// Stores the words as the option's value and returns "", or returns what is wrong with them. Does
// not check ranges (see fault_of_number_at). Only a list takes more than one word.
std::string store_words(const OptionInfo& info, const OptionTarget& target,
                        const std::vector<std::string>& words);

// The numbers that a range allows, "above 0 and at most 1"; "" for any number.
std::string range_words(const OptionRange& range);

// Returns what is wrong with a value, such as "0: must be at least 1": a number out of range, a
// word that is not one of the option's, text that is not UTF-8. Returns "" for a valid value.
// `may_be_empty`: the option's default is the empty text.
std::string fault_of_value(const OptionInfo& info, const OptionValue& value, bool may_be_empty);
// The same for the value that store_words() has just stored, if it is a number; else returns "".
std::string fault_of_number_at(const OptionInfo& info, const OptionTarget& target);

// The kind of an option of train, which must exist.
OptionKind kind_of_option(std::string_view name);

// The shortest text that reads back to the number, with a plain exponent: 1e-4, 0.001, 3e6.
std::string number_word(double value);
// One spelling of a number, for names and for comparing values: 0.0001, 1e-04 and 1e-4 are
// "1e-4". Any other word stays as it is.
std::string spelled_value(OptionKind kind, const std::string& word);

// Sets the option of that name to these words, as on the command line. Returns what is wrong with
// them, or "". Ranges are checked, too.
std::string set_option(TrainOptions& options, std::string_view name,
                       const std::vector<std::string>& words);

// A duration in seconds: "90s", "10m", "1h30m", "2d". Units d, h, m, s, each at most once and in
// this order. "0" is allowed if `zero`. Error(usage) naming `option` for other text, and for more
// than a hundred years.
double parse_duration(std::string_view text, std::string_view option, bool zero = false);

// A duration for people: "0.4 s", "12 s", "3 min", "1 h 20 min".
std::string format_duration(double seconds);

}  // namespace finetune
