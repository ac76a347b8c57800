// The script with which fish completes the command line.
#include "cli/completion/completion_scripts.h"
#include "core/text/text.h"

namespace finetune {
namespace {

constexpr std::string_view kFishHead =
    R"(# Completion of finetune in fish, as printed by `finetune completion fish`.

# Whether the command on the line is this one: 'train', 'bench step', or '' before there is any.
function __finetune_at
    set -l words (commandline -opc)
    set -l command "$words[2]"
    if contains -- "$command $words[3]" @INNER@
        set command "$command $words[3]"
    end
    test "$command" = "$argv[1]"
end

# Whether the last option on the line is one of these.
function __finetune_after
    set -l options (string match -r -- '^--[a-z][a-z-]*$' (commandline -opc))
    set -q options[1]; and contains -- $options[-1] $argv
end

complete -c finetune -f
)";

std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_start(const CommandEntry& command, const std::string& condition = "") {
  return concat("complete -c finetune -n \"__finetune_at '", command.name, "'",
                condition.empty() ? "" : "; and ", condition, "\"");
}

std::string fish_words(const ValueKind& kind) {
  std::vector<std::string> words = kind.words;
  if (kind.directories && !kind.files) words.push_back("(__fish_complete_directories)");
  if (words.empty()) return "";
  // fish expands command substitutions even inside the quotes of -a.
  return concat(" -a ", fish_quoted(join(words, " ")));
}

std::string fish_option(const CommandEntry& command, const OptionEntry& option) {
  std::string text = concat(fish_start(command), " -l ", option.name.substr(2));
  if (!option.short_name.empty()) text += concat(" -s ", option.short_name.substr(1));
  if (!option.is_flag && !option.may_be_bare) {
    text += option.kind.files ? " -r -F" : " -x";
  }
  if (!option.is_flag) text += fish_words(option.kind);
  return concat(text, " -d ", fish_quoted(option.help), "\n");
}

std::string fish_command(const CommandEntry& command) {
  std::string text = "\n", several;
  for (const CommandEntry& inner : command.commands) {
    text += concat(fish_start(command), " -a ", inner.last_word(), " -d ", fish_quoted(inner.help),
                   "\n");
  }
  for (const OptionEntry& option : command.options) {
    text += fish_option(command, option);
    if (option.takes_several) several += " " + option.name;
  }
  if (!several.empty()) text += concat(fish_start(command, "__finetune_after" + several), " -F\n");
  for (const OptionEntry& argument : command.arguments) {
    text += concat(fish_start(command), argument.kind.files ? " -F" : "", fish_words(argument.kind),
                   "\n");
  }
  return text;
}

}  // namespace

std::string fish_script(const CommandEntry& program) {
  std::string inner;
  const std::vector<CommandEntry> commands = all_commands(program);
  for (const CommandEntry& command : commands) {
    if (command.name.find(' ') != std::string::npos) {
      inner += concat(inner.empty() ? "" : " ", fish_quoted(command.name));
    }
  }
  std::string text(kFishHead);
  constexpr std::string_view place = "@INNER@";
  text.replace(text.find(place), place.size(), inner);
  text += fish_command(program);
  for (const CommandEntry& command : commands) text += fish_command(command);
  return text;
}

}  // namespace finetune
