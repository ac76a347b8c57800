// Options and commands by the names that other programs have for them: Hugging Face's Trainer and
// its example scripts, simpletransformers, SetFit, AutoTrain, Ludwig, fastText, spaCy,
// scikit-learn, llama.cpp. Here are the names that need a condition or an explanation; one that is
// only another name of an option is in the option's row (OptionInfo::aliases).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace finetune {

struct OptionInfo;

// A row of the table. `names` and `commands` are separated by blanks; without commands the row is
// for every command that has `own`. A name may be written "report_to=wandb": the row is then for
// this value alone. `own` is our option without dashes, and `rest` follows "is --own". Without
// `own` the row is an answer of its own: `rest` follows the name.
struct ForeignName {
  std::string_view names, commands, own, rest;
};

// The rows' order decides where several would do; all of them come before the aliases.
std::span<const ForeignName> foreign_option_names();
// Other programs' commands. `own` is our command, or empty: then `rest` follows the name.
std::span<const ForeignName> foreign_command_names();

// Returns "--learning_rate is --lr here", for an option that `command` does not have under this
// name (the case of letters, '-' and '_' do not matter). `value` is the word behind it, or empty.
// `has` says whether the command has an option of ours. Nothing for a name that is not in the
// table and is not an alias of an option of train. A letter with two dashes ("--C") keeps them.
std::optional<std::string> foreign_option_hint(
    std::string_view command, std::string_view name, std::string_view value,
    const std::function<bool(std::string_view own)>& has);

// Returns "fit is finetune train here", or nothing.
std::optional<std::string> foreign_command_hint(std::string_view name);

// The option's alias that `folded` names, or "". `value` and `exact` as in the tables.
std::string_view alias_of(const OptionInfo& option, std::string_view folded,
                          std::string_view value = "", std::string_view exact = "");

// Lower case without '-' and '_': two names that differ in nothing else are the same.
std::string folded_name(std::string_view name);

}  // namespace finetune
