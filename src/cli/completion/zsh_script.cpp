// The script with which zsh completes the command line.
#include <algorithm>

#include "cli/completion/completion_scripts.h"
#include "core/text/text.h"

namespace finetune {
namespace {

// Quotes text for '...', and escapes `special` characters of _arguments and _describe.
std::string zsh_quoted(std::string_view text, std::string_view special) {
  std::string out;
  for (char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '\\' || special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_function(const CommandEntry& command) {
  std::string name = command.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return concat("_finetune", name.empty() ? "" : "_", name);
}

// The action with which _arguments completes a value of this kind.
std::string zsh_action(const ValueKind& kind) {
  const std::string files = kind.files ? "_files" : kind.directories ? "_files -/" : "";
  if (kind.words.empty()) return files;
  const std::string words = join(kind.words, " ");
  if (files.empty()) return concat("(", words, ")");
  return concat("{compadd -- ", words, "; ", files, "}");
}

std::string zsh_value(const OptionEntry& option) {
  if (option.is_flag) return "";
  const char* const start = option.takes_several ? ":*-*:" : option.may_be_bare ? "::" : ":";
  return concat(start, zsh_quoted(option.type, ":"), ":", zsh_action(option.kind));
}

std::string zsh_option(const OptionEntry& option, const std::string& name, bool ends_line) {
  const bool takes_equals = !option.is_flag && !option.takes_several && name.starts_with("--");
  return concat("    '",
                ends_line           ? "(- *)"
                : option.may_repeat ? "*"
                                    : "",
                name, takes_equals ? "=" : "", "[", zsh_quoted(option.help, "[]"), "]",
                zsh_value(option), "' \\\n");
}

std::string zsh_options(const CommandEntry& command) {
  std::string text;
  for (const OptionEntry& option : command.options) {
    const bool ends_line = option.name == "--help" || option.name == "--version";
    if (!option.short_name.empty()) text += zsh_option(option, option.short_name, ends_line);
    text += zsh_option(option, option.name, ends_line);
  }
  return text;
}

std::string zsh_plain(const CommandEntry& command) {
  std::string text =
      concat(zsh_function(command), "() {\n  _arguments -S \\\n", zsh_options(command));
  for (const OptionEntry& argument : command.arguments) {
    text += concat("    '", argument.takes_several ? "*" : "", ":", zsh_quoted(argument.type, ":"),
                   ":", zsh_action(argument.kind), "' \\\n");
  }
  text.erase(text.size() - 3);  // the last " \\\n"
  return text + "\n}\n\n";
}

std::string zsh_with_commands(const CommandEntry& command) {
  std::string names, cases;
  for (const CommandEntry& inner : command.commands) {
    const std::string word = inner.last_word();
    names += concat("    '", word, ":", zsh_quoted(inner.help, ":"), "'\n");
    cases += concat("        ", word, ") ", zsh_function(inner), " ;;\n");
  }
  return concat(
      zsh_function(command), "() {\n  local curcontext=$curcontext state line\n",
      "  local -A opt_args\n  local -a commands=(\n", names, "  )\n  _arguments -C -S \\\n",
      zsh_options(command), "    '1:command:->command' \\\n    '*::argument:->argument'\n",
      "  case $state in\n    command) _describe -t commands command commands ;;\n",
      "    argument)\n      case $line[1] in\n", cases, "      esac\n      ;;\n  esac\n}\n\n");
}

}  // namespace

std::string zsh_script(const CommandEntry& program) {
  std::string text =
      "#compdef finetune\n# Completion of finetune in zsh, as printed by `finetune completion "
      "zsh`.\n\n";
  for (const CommandEntry& command : all_commands(program)) {
    text += command.commands.empty() ? zsh_plain(command) : zsh_with_commands(command);
  }
  text += zsh_with_commands(program);
  // Autoloaded by name from $fpath, or read with `source`.
  return text +
         "if [[ $funcstack[1] == _finetune ]]; then\n  _finetune \"$@\"\nelse\n  compdef _finetune "
         "finetune\nfi\n";
}

}  // namespace finetune
