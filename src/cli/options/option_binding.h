// Binds members of an options structure to the options of a subcommand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "cli/options/model_option.h"
#include "cli/parser.h"
#include "core/text/text.h"
#include "tasks/registry.h"
#include "train/options/option_words.h"
#include "train/options/options.h"

namespace finetune {

// Of an option of one value that is given twice the last counts: a script can append to a line.
class OptionBinder {
 public:
  // `only`: the task that the command is for; else options say which they are for.
  explicit OptionBinder(Subcommand command, std::optional<TaskKind> only = {})
      : command_(command), only_(only) {}

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
    if (info.name == "model") names_model(option);
    option.type_name(std::string(info.choices.empty() ? info.value : info.choices));
    if (!value.empty()) option.default_str(value);
    option.check([info](std::string& given) { return fault_of_word(info, given); });
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
  std::string help_of(const OptionInfo& info) const {
    const std::optional<TaskKind> task = only_ ? std::nullopt : task_of_option(info.name);
    return task ? concat(name_of(*task), ": ", info.help) : std::string(info.help);
  }

  // Not by CLI11's rules, which depend on the locale.
  template <typename Value>
  Option bind_number(const OptionInfo& info, Value& value) {
    using Number = typename OptionNumber<Value>::Type;
    std::string name = dashed(info), word(info.choices);
    auto take = [&value, info](const std::string& text) { return take_number(info, text, value); };
    Option option = command_.add_option_function(name, take, help_of(info));
    std::string type(!info.value.empty() ? info.value : std::is_same_v<Number, double> ? "X" : "N");
    if (!word.empty()) type += "|" + word;
    option.group(std::string(info.group)).type_name(type).take_last();
    if (info.bare != 0) option.expected(0, 1);
    if constexpr (std::is_same_v<Value, Number>) option.default_str(concat(value));
    return option;
  }

  Subcommand command_;
  std::optional<TaskKind> only_;
};

}  // namespace finetune
