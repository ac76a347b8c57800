// Binds members of an options structure to the options of a subcommand.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "core/text.h"
#include "train/options.h"

namespace finetune {

// An option of one value that is given twice has the last one, so that a script can append to a line.
class OptionBinder {
 public:
  explicit OptionBinder(CLI::App& app) : app_(app) {}

  void operator()(const OptionInfo& info, bool& value) {
    app_.add_flag(dashed(info), value, std::string(info.help))->group(std::string(info.group));
  }
  void operator()(const OptionInfo& info, std::vector<std::string>& value) {
    CLI::Option* option = app_.add_option(dashed(info), value, std::string(info.help));
    option->group(std::string(info.group));
    if (info.name == "text-column") option->delimiter(',');
    if (info.name == "train" || info.name == "eval") option->type_name("FILE ...")->expected(1, 1 << 20);
    else option->type_name(info.name == "text-column" ? "NAME[,NAME...]" : "TEXT")->expected(1)->take_all();
  }
  void operator()(const OptionInfo& info, std::string& value) {
    CLI::Option* option = app_.add_option(dashed(info), value, std::string(info.help));
    option->group(std::string(info.group))->take_last();
    if (info.choices.empty()) {
      option->type_name("TEXT");
      if (!value.empty()) option->default_str(value);
      return;
    }
    std::vector<std::string> words;
    for (std::string_view word : split(info.choices, '|')) words.emplace_back(word);
    option->type_name(std::string(info.choices));
    if (!value.empty()) option->default_str(value);
    std::string name(info.name);
    option->check(CLI::Validator(
        [words, name](std::string& given) {
          for (const auto& word : words) {
            if (given == word) return std::string();
          }
          return concat(in_quotes(given), " is none of ", join(words, ", "));
        },
        "", ""));
  }
  template <typename Number>
  void operator()(const OptionInfo& info, Number& value) {
    CLI::Option* option = app_.add_option(dashed(info), value, std::string(info.help));
    option->group(std::string(info.group))->type_name("N")->take_last();
    // Values that mean "not given" are not shown as defaults.
    if (value > 0 || (value == 0 && (info.name == "label-smoothing" || info.name == "null-threshold" ||
                                     info.name == "eval-fraction" || info.name == "early-stopping"))) {
      option->default_str(concat(value));
    }
  }

 private:
  static std::string dashed(const OptionInfo& info) { return concat("--", info.name); }

  CLI::App& app_;
};

}  // namespace finetune
