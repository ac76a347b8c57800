// Turns a row of the table into an option of the parser.
#include "cli/options/option_binding.h"

#include "cli/grid_line.h"
#include "core/error.h"
#include "tasks/registry.h"
#include "train/options/option_words.h"
#include "train/options/table/option_table.h"
#include "weights/hub_cache.h"

namespace finetune {
namespace {

constexpr std::string_view kDefaultMark = " (default: ";

bool is_from_model(const OptionInfo& info, const OptionUse& use) {
  return info.is_stored && (use.command & commands::answers) != 0;
}

std::string help_of(const OptionInfo& info, const OptionUse& use) {
  std::string help(info.help_in(use.command));
  if (is_from_model(info, use) && help.find("as trained)") == std::string::npos) {
    help = concat(help.substr(0, help.find(kDefaultMark)), kDefaultMark, "as trained)");
  }
  const std::optional<TaskKind> task = use.task ? std::nullopt : task_of(info);
  return task ? concat(name_of(*task), ": ", help) : help;
}

std::string type_of(const OptionInfo& info, OptionKind kind) {
  if (kind == OptionKind::text || kind == OptionKind::list) {
    return std::string(info.words.empty() ? info.value : info.words);
  }
  std::string type(!info.value.empty() ? info.value : kind == OptionKind::number ? "X" : "N");
  return info.words.empty() ? type : concat(type, "|", info.words);
}

// Returns the default that --help shows: `words` if the option is empty by default, "" if its
// default is outside of the allowed range.
std::string default_of(const OptionInfo& info, const OptionTarget& target) {
  const OptionValue value = value_at(target);
  if (!std::holds_alternative<std::string>(value) && !fault_of_value(info, value, true).empty()) {
    return "";
  }
  return std::holds_alternative<std::monostate>(value) ? std::string(info.words) : text_of(value);
}

bool is_hidden(const OptionInfo& info, const OptionUse& use) {
  const bool is_of_command = (info.commands & use.command) != 0;
  return !is_of_command || (use.task && is_foreign(info, *use.task));
}

// Reads values without CLI11, whose rules for numbers depend on the locale.
std::string take_words(const OptionInfo& info, const OptionTarget& target,
                       std::vector<std::string> words, std::string_view name) {
  if (info.is_model) words.at(0) = model_path(words.at(0));
  std::string fault = store_words(info, target, words);
  if (!fault.empty()) return fault;
  fault = fault_of_number_at(info, target);
  if (!fault.empty()) throw usage_error("--", name, " ", fault);
  return "";
}

Option add_list(Subcommand command, const std::string& name, const OptionInfo& info,
                const OptionTarget& target, const OptionUse& use) {
  constexpr int kMostFiles = 1 << 20;
  const auto take = [info, target](const std::vector<std::string>& words) {
    return take_words(info, target, words, info.name);
  };
  Option option = command.add_list_function(name, take, help_of(info, use));
  if (info.separator != '\0') option.delimiter(info.separator);
  if (info.value.ends_with("...")) return option.expected(1, kMostFiles);
  return option.expected(1).take_all();
}

Option add_value(Subcommand command, const std::string& name, const OptionInfo& info,
                 const OptionTarget& target, const OptionUse& use) {
  const auto take = [info, target, use](const std::string& word) {
    const std::string fault = take_words(info, target, {word}, info.name_in(use.command));
    if (fault.empty() || (use.command & (commands::train | commands::plan)) == 0) return fault;
    const auto line = grid_line_for_values(info.name, word);
    return line ? concat(fault, "; to try several, write ", *line) : fault;
  };
  Option option = command.add_option_function(name, take, help_of(info, use));
  if (!info.is_argument) option.take_last();
  if (info.bare != 0) option.expected(0, 1);
  return is_from_model(info, use) ? option : option.default_str(default_of(info, target));
}

}  // namespace

Option add_option(Subcommand command, const OptionInfo& info, const OptionTarget& target,
                  const OptionUse& use) {
  const OptionKind kind = kind_of(target);
  const std::string name = concat(info.is_argument ? "" : "--", info.name_in(use.command));
  Option option = kind == OptionKind::flag
                      ? command.add_flag(name, *std::get<bool*>(target), help_of(info, use))
                  : kind == OptionKind::list ? add_list(command, name, info, target, use)
                                             : add_value(command, name, info, target, use);
  if (is_hidden(info, use))
    option.group("");
  else if (!info.group.empty())
    option.group(std::string(info.group));
  if (kind != OptionKind::flag) option.type_name(type_of(info, kind));
  if ((info.common & use.command) != 0) option.common();
  return (info.required & use.command) != 0 ? option.required() : option;
}

}  // namespace finetune
