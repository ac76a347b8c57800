// The script with which bash completes the command line. It needs no bash-completion package.
#include <algorithm>
#include <map>

#include "cli/completion/completion_scripts.h"
#include "core/text/text.h"

namespace finetune {
namespace {

constexpr std::string_view kBashHead =
    R"(# Completion of finetune in bash, as printed by `finetune completion bash`.
_finetune() {
  COMPREPLY=()
  # bash splits --task=qa at "=".
  local words=() i
  for ((i = 0; i <= COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} != = ]]; then
      words+=("${COMP_WORDS[i]}")
    elif ((i == COMP_CWORD)); then
      words+=("")
    fi
  done
  local last=$((${#words[@]} - 1))
  local current=${words[last]} command="" option="" distance=0
  ((last == 1)) || command=${words[1]}
  for ((i = last - 1; i >= 1; --i)); do
    if [[ ${words[i]} == --[a-z]* ]]; then
      option=${words[i]} distance=$((last - i))
      break
    fi
  done
)";

// `value` completes the word after an option, `argument` a word on its own: the words to offer, or
// "files" or "directories" if none fits. `most` is the number of words that the option takes.
constexpr std::string_view kBashTail = R"(  esac
  if ((distance >= 1 && distance <= most)) && [[ $current != -?* ]]; then
    kind=$value_kind offered=$value
  elif [[ $current != -* && -n $argument_kind ]]; then
    kind=$argument_kind offered=$argument
  else
    kind=words offered=$options
  fi
  COMPREPLY=($(compgen -W "$offered" -- "$current"))
  if ((${#COMPREPLY[@]} == 0)); then
    # Readline's own completion of names knows how to quote them.
    if [[ $kind == files ]]; then
      compopt -o default 2> /dev/null
    elif [[ $kind == directories ]]; then
      compopt -o dirnames 2> /dev/null
    fi
  fi
}
complete -F _finetune finetune
)";

constexpr const char* kManyWords = "1000000";

std::string bash_kind(const ValueKind& kind) {
  return kind.files ? "files" : kind.directories ? "directories" : "words";
}

// Options with the same values share a line.
std::string option_cases(const CommandEntry& command) {
  std::vector<std::string> order;
  std::map<std::string, std::string> names_of;
  for (const OptionEntry& option : command.options) {
    if (option.is_flag) continue;
    const std::string values = concat("most=", option.takes_several ? kManyWords : "1",
                                      " value_kind=", bash_kind(option.kind), " value='",
                                      join(option.kind.words, " "), "'");
    std::string& names = names_of[values];
    if (names.empty()) order.push_back(values);
    names += concat(names.empty() ? "" : " | ", option.name);
  }
  std::string text;
  for (const std::string& values : order) {
    text += concat("        ", names_of[values], ") ", values, " ;;\n");
  }
  if (text.empty()) return text;
  return concat("      case $option in\n", text, "      esac\n");
}

std::string offered_without_arguments(const CommandEntry& command) {
  std::vector<std::string> words;
  for (const CommandEntry& inner : command.commands) {
    words.push_back(inner.last_word());
  }
  for (const OptionEntry& option : command.options) {
    words.push_back(option.name);
    if (!option.short_name.empty()) words.push_back(option.short_name);
  }
  return join(words, " ");
}

std::string bash_case(const CommandEntry& command) {
  std::string text = concat("    '", command.name, "')\n      options='",
                            offered_without_arguments(command), "'\n");
  if (!command.arguments.empty()) {
    const ValueKind& kind = command.arguments.front().kind;
    text += concat("      argument_kind=", bash_kind(kind), " argument='", join(kind.words, " "),
                   "'\n");
  }
  return concat(text, option_cases(command), "      ;;\n");
}

// The second word may be a command as well, as in "bench step".
std::string bash_inner_commands(const CommandEntry& command) {
  std::vector<std::string> names;
  for (const CommandEntry& inner : command.commands) names.push_back(inner.name);
  return concat("  if ((last > 2)); then\n    case \"$command ${words[2]}\" in\n      '",
                join(names, "' | '"), "') command+=\" ${words[2]}\" ;;\n    esac\n  fi\n");
}

}  // namespace

std::string bash_script(const CommandEntry& program) {
  std::string text(kBashHead);
  for (const CommandEntry& command : program.commands) {
    if (!command.commands.empty()) text += bash_inner_commands(command);
  }
  text +=
      "  local options='' value='' value_kind=words most=0 argument='' argument_kind=''\n"
      "  local kind offered\n"
      "  case $command in\n";
  text += bash_case(program);
  for (const CommandEntry& command : all_commands(program)) text += bash_case(command);
  return text.append(kBashTail);
}

}  // namespace finetune
