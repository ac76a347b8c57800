// Binds members of an options structure to the options of a subcommand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "cli/parser.h"
#include "core/text/text.h"
#include "tasks/registry.h"
#include "train/options/options.h"

namespace finetune {

// Of an option of one value that is given twice the last counts: a script can append to a line.
class OptionBinder {
 public:
  explicit OptionBinder(Subcommand command) : command_(command) {}

  void operator()(const OptionInfo& info, bool& value) {
    command_.add_flag(dashed(info), value, help_of(info)).group(std::string(info.group));
  }
  void operator()(const OptionInfo& info, std::vector<std::string>& value) {
    Option option = command_.add_option(dashed(info), value, help_of(info));
    option.group(std::string(info.group)).type_name(std::string(info.value));
    if (info.name == "text-column") option.delimiter(',');
    if (info.value == "FILE...")
      option.expected(1, 1 << 20);
    else
      option.expected(1).take_all();
  }
  void operator()(const OptionInfo& info, std::string& value) {
    Option option = command_.add_option(dashed(info), value, help_of(info));
    option.group(std::string(info.group)).take_last();
    if (info.choices.empty()) {
      option.type_name(std::string(info.value));
      option.check([](std::string& given) { return given.empty() ? "its value is empty" : ""; });
      if (!value.empty()) option.default_str(value);
      return;
    }
    std::vector<std::string> words;
    for (std::string_view word : split(info.choices, '|')) words.emplace_back(word);
    option.type_name(std::string(info.choices));
    if (!value.empty()) option.default_str(value);
    option.check([words](std::string& given) {
      for (const auto& word : words) {
        if (given == word) return std::string();
      }
      return concat(in_quotes(given), " is none of ", join(words, ", "));
    });
  }
  void operator()(const OptionInfo& info, double& value) { bind_number(info, value); }
  void operator()(const OptionInfo& info, int64_t& value) { bind_number(info, value); }
  void operator()(const OptionInfo& info, uint64_t& value) { bind_number(info, value); }
  template <typename Number>
  void operator()(const OptionInfo& info, std::optional<Number>& value) {
    bind_number(info, value).default_str(std::string(info.choices));
  }

 private:
  static std::string dashed(const OptionInfo& info) { return concat("--", info.name); }
  static std::string help_of(const OptionInfo& info) {
    const std::optional<TaskKind> task = task_of_option(info.name);
    return task ? concat(name_of(*task), ": ", info.help) : std::string(info.help);
  }

  static std::optional<double> read(const std::string& text, double) { return parse_double(text); }
  static std::optional<int64_t> read(const std::string& text, int64_t) { return parse_int(text); }
  static std::optional<uint64_t> read(const std::string& text, uint64_t) {
    auto number = parse_int(text);  // config.toml has signed integers
    return number && *number >= 0 ? std::optional(uint64_t(*number)) : std::nullopt;
  }
  template <typename Number>
  static Number number_in(const Number&);
  template <typename Number>
  static Number number_in(const std::optional<Number>&);

  // Read by our own rules: CLI11's depend on the locale, and it takes 1e400, 0x10 and "".
  template <typename Value>
  Option bind_number(const OptionInfo& info, Value& value) {
    using Number = decltype(number_in(value));
    std::string name = dashed(info), word(info.choices);
    auto take = [&value, word, bare = info.bare](const std::string& text) {
      auto number = bare != 0 && text.empty() ? std::optional(Number(bare)) : read(text, Number());
      bool is_word = !word.empty() && text == word;
      if (!number && !is_word) {
        return concat(in_quotes(text), " is not a ", number_words<Number>,
                      word.empty() ? "" : " or ", word);
      }
      value = is_word ? Value() : Value(*number);
      return std::string();
    };
    Option option = command_.add_option_function(name, take, help_of(info));
    std::string type(!info.value.empty() ? info.value : std::is_same_v<Number, double> ? "X" : "N");
    if (!word.empty()) type += "|" + word;
    option.group(std::string(info.group)).type_name(type).take_last();
    if (info.bare != 0) option.expected(0, 1);
    if constexpr (std::is_same_v<Value, Number>) option.default_str(concat(value));
    return option;
  }

  template <typename Number>
  static constexpr const char* number_words =
      std::is_same_v<Number, double>    ? "number"
      : std::is_same_v<Number, int64_t> ? "whole number"
                                        : "whole number from 0 to 9223372036854775807";

  Subcommand command_;
};

}  // namespace finetune
