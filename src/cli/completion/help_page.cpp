// The pages that --help and --help all print, wrapped to a number of columns.
#include <algorithm>
#include <utility>

#include "cli/completion/completion_scripts.h"
#include "core/terminal_line.h"
#include "core/text/text.h"

namespace finetune {
namespace {

constexpr size_t kScreenLines = 39;  // of 40: the prompt needs one
constexpr size_t kOptionColumns = 28, kCommandColumns = 14, kGap = 2;
constexpr size_t kExampleIndent = 2;
constexpr std::string_view kGoesOn = " \\";  // ends a line of a command that has more
// The short page leaves this prefix out.
constexpr std::string_view kUsualTask = "classification: ";

// A name, and a text beside it; below it if the name is long.
std::string item(const std::string& name, std::string_view text, size_t indent, size_t columns) {
  std::string line = "  " + name, above;
  if (count_code_points(line) + kGap > indent) above = std::exchange(line, "") + "\n";
  line.append(indent - count_code_points(line), ' ');
  return above + wrapped(line, text, indent, columns);
}

std::string option_item(const OptionEntry& option, size_t columns) {
  std::string name = option.name, help = option.help;
  if (!option.short_name.empty()) name = concat(option.short_name, ", ", name);
  if (!option.is_flag && option.type != option.name) name += " " + option.type;
  if (option.required) help = concat("required: ", help);
  if (!option.standard.empty()) help += concat(" [", option.standard, "]");
  return item(name, help, std::min(kOptionColumns, columns / 2), columns);
}

std::string usage(const CommandEntry& command, size_t columns) {
  std::string words = concat("finetune", command.name.empty() ? "" : " ", command.name);
  if (!command.commands.empty()) words += command.name.empty() ? " COMMAND" : " [COMMAND]";
  for (const OptionEntry& argument : command.arguments) {
    words += argument.required ? " " + argument.type : concat(" [", argument.type, "]");
  }
  for (const OptionEntry& option : command.options) {
    if (option.required) words += concat(" ", option.name, " ", option.type);
  }
  return wrapped("Usage: ", words + " [OPTIONS]", 9, columns);
}

std::string options_by_group(const CommandEntry& command, size_t columns) {
  std::string text;
  for (const std::string& group : option_groups(command)) {
    text += concat("\n", group, ":\n");
    for (const OptionEntry& option : command.options) {
      if (option.group == group) text += option_item(option, columns);
    }
  }
  return text;
}

// An example of one or more lines, folded if one is wider than the screen and it is a command. A
// remark beside it then follows in a line of its own.
std::string example_text(const std::vector<std::string_view>& lines, size_t columns) {
  std::string written, command;
  size_t width = 0;
  for (std::string_view line : lines) {
    written += concat(line, "\n");
    width = std::max(width, count_code_points(line));
    const bool goes_on = line.ends_with(kGoesOn);
    command += command.empty() ? std::string(line) : concat(" ", trim(line));
    if (goes_on) command.erase(command.size() - kGoesOn.size());
  }
  if (width <= columns) return written;
  const size_t end = std::min(command.find("  ", kExampleIndent), command.size());
  const std::string_view remark = trim(std::string_view(command).substr(end));
  constexpr size_t kMore = kExampleIndent + 4;
  std::string text = command.substr(0, end);
  if (text.find("finetune") != text.npos) text = folded_command(text, kMore, columns);
  text += "\n";
  if (remark.empty()) return text;
  return text + wrapped(std::string(kMore, ' ') + "# ", remark, kMore + kGap, columns);
}

std::string examples_text(std::string_view examples, size_t columns) {
  std::string text;
  std::vector<std::string_view> example;
  for (std::string_view line : split(examples, '\n')) {
    example.push_back(line);
    if (line.ends_with(kGoesOn)) continue;
    text += example_text(example, columns);
    example.clear();
  }
  return text;
}

// Examples follow the line that announces them; other blocks have an empty line above.
std::string blocks_text(const std::vector<FooterBlock>& blocks, size_t columns) {
  std::string text;
  for (const FooterBlock& block : blocks) {
    text += block.is_verbatim ? examples_text(block.text, columns)
                              : "\n" + wrapped("", block.text, 0, columns);
  }
  return text;
}

// Returns the first examples and their heading.
std::vector<FooterBlock> examples_in(const std::vector<FooterBlock>& blocks) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (begin_with_examples(std::span(blocks).subspan(i))) return {blocks[i], blocks[i + 1]};
  }
  return {};
}

std::string opening(const CommandEntry& command, size_t columns) {
  std::string text = concat(wrapped("", command.help, 0, columns), "\n", usage(command, columns));
  const auto has_help = [](const OptionEntry& argument) { return !argument.help.empty(); };
  if (!std::any_of(command.arguments.begin(), command.arguments.end(), has_help)) return text;
  text += "\nArguments:\n";
  for (const OptionEntry& argument : command.arguments) {
    if (has_help(argument)) text += option_item(argument, columns);
  }
  return text;
}

std::string short_page(const CommandEntry& command, size_t columns) {
  std::string text = opening(command, columns) + "\n";
  for (OptionEntry option : command.options) {
    if (option.help.starts_with(kUsualTask)) option.help.erase(0, kUsualTask.size());
    if (option.is_common) text += option_item(option, columns);
  }
  text += blocks_text(examples_in(footer_blocks(command.footer)), columns);
  return concat(text, "\nfinetune ", command.name, " --help all shows all ", command.options.size(),
                " options.\n");
}

}  // namespace

std::string full_help_page(const CommandEntry& command, size_t columns) {
  std::string text = opening(command, columns) + options_by_group(command, columns);
  if (!command.commands.empty()) text += "\nCommands:\n";
  for (const CommandEntry& inner : command.commands) {
    text += item(inner.last_word(), inner.help, kCommandColumns, columns);
  }
  return text + blocks_text(footer_blocks(command.footer), columns);
}

std::string help_page(const CommandEntry& command, size_t columns) {
  const std::string whole = full_help_page(command, columns);
  const auto lines = size_t(std::count(whole.begin(), whole.end(), '\n'));
  const bool has_common = std::any_of(command.options.begin(), command.options.end(),
                                      [](const OptionEntry& option) { return option.is_common; });
  return lines > kScreenLines && has_common ? short_page(command, columns) : whole;
}

}  // namespace finetune
