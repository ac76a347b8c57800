// Options and commands by the names that other programs have for them: Hugging Face's Trainer and
// its example scripts, simpletransformers, SetFit, AutoTrain, Ludwig, fastText, spaCy,
// scikit-learn, llama.cpp. These names need a condition or an explanation; plain synonyms are in
// the options' rows (OptionInfo::aliases).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace finetune {

struct OptionInfo;

// A row of the table. `names` and `commands` are separated by blanks. If `commands` is empty, the
// row is for every command that has `own`. A name may be written "report_to=wandb": it is then for
// this value only. `own` is our option without dashes, and `rest` follows "is --own". If `own` is
// empty, `rest` is the whole answer and follows the name.
struct ForeignName {
  std::string_view names, commands, own, rest;
};

// Of several rows that match, the first one counts. All rows are searched before the aliases.
std::span<const ForeignName> foreign_option_names();
// Other programs' commands. `own` is our command. If it is empty, `rest` follows the name.
std::span<const ForeignName> foreign_command_names();

// Returns "--learning_rate is --lr here" for an option that `command` does not have under this
// name. Case, '-' and '_' do not matter. `value` is the next word, or empty. `has` says whether the
// command has one of our options. Returns nothing if the name is neither in the table nor an alias
// of an option of train. A letter with two dashes ("--C") is passed with them.
std::optional<std::string> foreign_option_hint(
    std::string_view command, std::string_view name, std::string_view value,
    const std::function<bool(std::string_view own)>& has);

// Returns "fit is finetune train here", or nothing.
std::optional<std::string> foreign_command_hint(std::string_view name);

// Returns the alias of the option that equals `folded`, or "". `value` and `exact`: see the tables.
std::string_view alias_of(const OptionInfo& option, std::string_view folded,
                          std::string_view value = "", std::string_view exact = "");

// In lower case without '-' and '_'. Names that fold to the same text are the same name.
std::string folded_name(std::string_view name);

}  // namespace finetune
