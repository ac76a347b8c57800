// Sets options by name from words, and checks values against their rows.
#include "train/options/option_words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "train/options/table/option_table.h"

namespace finetune {

std::string range_words(const OptionRange& range) {
  auto text = [](double end) {  // 1000000, not 1e+06
    return end == std::floor(end) ? concat(int64_t(end)) : concat(end);
  };
  if (std::isinf(range.least)) return "";
  std::string words = concat(range.above_least ? "above " : "at least ", text(range.least));
  if (range.as_float) return words + " (in single precision)";
  if (std::isinf(range.most)) return words;
  if (!range.above_least && !range.below_most) {
    return concat("between ", text(range.least), " and ", text(range.most));
  }
  return concat(words, range.below_most ? " and below " : " and at most ", text(range.most));
}

namespace {

bool inside(const OptionRange& range, double value) {
  if (range.as_float) value = double(float(value));
  return (range.above_least ? value > range.least : value >= range.least) &&
         (range.below_most ? value < range.most : value <= range.most);
}

// Returns what is wrong with a word: it is empty, or is not one of the option's words.
std::string fault_of_word(const OptionInfo& info, const std::string& word) {
  if (info.words.empty()) return word.empty() ? "its value is empty" : "";
  const auto words = split(info.words, '|');
  if (std::find(words.begin(), words.end(), word) != words.end()) return "";
  return concat(in_quotes(word), " is not one of ", join({words.begin(), words.end()}, ", "));
}

template <typename Number>
constexpr const char* kNumberWords =
    std::is_same_v<Number, double>    ? "number"
    : std::is_same_v<Number, int64_t> ? "whole number"
                                      : "whole number from 0 to 9223372036854775807";

template <typename Number>
std::string fault_of_number(const OptionInfo& info, const std::string& word) {
  return concat(in_quotes(word), " is not a ", kNumberWords<Number>,
                info.words.empty() ? "" : " or ", info.words);
}

struct WordStore {
  const OptionInfo& info;
  const std::vector<std::string>& words;

  std::string operator()(bool* to) const {
    const std::string& word = words.at(0);
    if (word != "true" && word != "false") {
      return concat(in_quotes(word), " is neither true nor false");
    }
    *to = word == "true";
    return "";
  }
  std::string operator()(std::string* to) const {
    *to = words.at(0);
    return fault_of_word(info, *to);
  }
  std::string operator()(std::vector<std::string>* to) const {
    to->clear();
    for (const std::string& word : words) {
      if (std::string fault = fault_of_word(info, word); !fault.empty()) return fault;
      if (info.separator == '\0') {
        to->push_back(word);
        continue;
      }
      for (std::string_view part : split(word, info.separator)) to->emplace_back(part);
    }
    return "";
  }
  template <typename Number>
  std::string operator()(Number* to) const {
    const auto number = number_in_word<Number>(words.at(0));
    if (!number) return fault_of_number<Number>(info, words.at(0));
    *to = *number;
    return "";
  }
  template <typename Number>
  std::string operator()(std::optional<Number>* to) const {
    const std::string& word = words.at(0);
    if (!info.words.empty() && word == info.words) {
      to->reset();
      return "";
    }
    *to = info.bare != 0 && word.empty() ? Number(info.bare) : number_in_word<Number>(word);
    return *to ? "" : fault_of_number<Number>(info, word);
  }
};

struct ValueCheck {
  const OptionInfo& info;
  bool may_be_empty;

  std::string operator()(const std::string& value) const {
    if (std::string fault = fault_of_text(value); !fault.empty()) return fault;
    if (info.words.empty() || (value.empty() && may_be_empty)) return "";
    if (fault_of_word(info, value).empty()) return "";
    const auto words = split(info.words, '|');
    return concat(in_quotes(value), ": must be one of ", join({words.begin(), words.end()}, ", "));
  }
  std::string operator()(const std::vector<std::string>& values) const {
    for (const std::string& value : values) {
      if (std::string fault = fault_of_text(value); !fault.empty()) return fault;
    }
    return "";
  }
  std::string operator()(double value) const {
    if (!std::isfinite(value)) return concat(value, ": must be a finite number");
    return fault_of_range(value);
  }
  std::string operator()(int64_t value) const { return fault_of_range(value); }
  template <typename Other>  // no value, a flag, a seed
  std::string operator()(const Other&) const {
    return "";
  }

 private:
  // The value goes into config.toml, and TOML is UTF-8.
  static std::string fault_of_text(const std::string& value) {
    if (invalid_utf8(value) == std::string::npos) return "";
    return concat(in_quotes(value), ": is not valid UTF-8");
  }
  template <typename Number>
  std::string fault_of_range(Number value) const {
    if (inside(info.range, double(value))) return "";
    return concat(value, ": must be ", range_words(info.range));
  }
};

}  // namespace

std::string store_words(const OptionInfo& info, const OptionTarget& target,
                        const std::vector<std::string>& words) {
  return std::visit(WordStore{info, words}, target);
}

std::string fault_of_value(const OptionInfo& info, const OptionValue& value, bool may_be_empty) {
  return std::visit(ValueCheck{info, may_be_empty}, value);
}

std::string fault_of_number_at(const OptionInfo& info, const OptionTarget& target) {
  const OptionValue value = value_at(target);
  const bool is_number =
      std::holds_alternative<double>(value) || std::holds_alternative<int64_t>(value);
  return is_number ? fault_of_value(info, value, false) : "";
}

OptionKind kind_of_option(std::string_view name) {
  const TrainOption* option = find_train_option(name);
  FINETUNE_CHECK(option);
  TrainOptions any;
  return kind_of(option->in(any));
}

std::string number_word(double value) {
  std::string text = format_number(value);
  const size_t e = text.find('e');
  if (e == std::string::npos) return text;
  size_t digits = e + 1;
  if (text[digits] == '+') text.erase(digits, 1);
  if (text[digits] == '-') ++digits;
  while (text[digits] == '0' && digits + 1 < text.size()) text.erase(digits, 1);
  return text;
}

std::string spelled_value(OptionKind kind, const std::string& word) {
  if (kind == OptionKind::whole_number) {
    const auto value = parse_int(word);
    return value ? concat(*value) : word;
  }
  const auto value = kind == OptionKind::number ? parse_double(word) : std::nullopt;
  return value ? number_word(*value) : word;
}

std::string set_option(TrainOptions& options, std::string_view name,
                       const std::vector<std::string>& words) {
  const TrainOption* option = find_train_option(name);
  if (!option) return "is not an option of train";
  const OptionTarget target = option->in(options);
  std::string fault = store_words(option->info, target, words);
  return fault.empty() ? fault_of_number_at(option->info, target) : fault;
}

double parse_duration(std::string_view text, std::string_view option, bool zero) {
  if (zero && text == "0") return 0;
  constexpr std::array<std::pair<char, double>, 4> units{
      {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}}};
  constexpr double hundred_years = 86400.0 * 36525;
  double seconds = 0;
  size_t next_unit = 0;
  std::string_view rest = text;
  bool valid = !rest.empty();
  while (valid && !rest.empty()) {
    size_t digits = rest.find_first_not_of("0123456789");
    valid = digits != std::string_view::npos && digits > 0 && digits <= 9;
    if (!valid) break;
    while (next_unit < units.size() && units[next_unit].first != rest[digits]) ++next_unit;
    valid = next_unit < units.size();
    if (!valid) break;
    seconds += double(*parse_int(rest.substr(0, digits))) * units[next_unit++].second;
    rest.remove_prefix(digits + 1);
  }
  if (!valid || (seconds == 0 && !zero) || seconds > hundred_years) {
    throw usage_error(option, " ", in_quotes(text), ": write a time such as 90s, 10m or 1h30m");
  }
  return seconds;
}

std::string format_duration(double seconds) {
  if (seconds < 60) return format_fixed(seconds, seconds < 10 ? 1 : 0) + " s";
  const int64_t minutes = int64_t(seconds / 60 + 0.5);
  if (minutes < 60) return concat(minutes, " min");
  return concat(minutes / 60, " h ", minutes % 60, " min");
}

}  // namespace finetune
