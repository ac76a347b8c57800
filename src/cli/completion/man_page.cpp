// The manual pages, in the macros of man(7).
#include <array>
#include <cstdint>
#include <cstdio>

#include "cli/completion/completion_scripts.h"
#include "cli/exit_code_table.h"
#include "core/switches.h"
#include "core/text/text.h"
#include "core/text/utf8.h"

namespace finetune {
namespace {

std::string troff_character(char32_t c) {
  std::array<char, 16> name{};
  std::snprintf(name.data(), name.size(), "\\[u%04X]", unsigned(c));
  return name.data();
}

// Escapes text for troff: backslashes, control lines, and hyphens, so that they can be searched.
std::string troff(std::string_view text) {
  std::string out;
  bool at_start = true;
  for (size_t at = 0; at < text.size();) {
    const utf8::Decoded d = utf8::decode(text, at);
    const char c = text[at];
    at += d.length;
    if (at_start && (c == '.' || c == '\'')) out += "\\&";
    if (d.c >= 0x80)
      out += troff_character(d.c);
    else if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    at_start = c == '\n';
  }
  return out;
}

std::string bold(std::string_view text) {
  return concat("\\fB", troff(text), "\\fR");
}

std::string italic(std::string_view text) {
  return concat("\\fI", troff(text), "\\fR");
}

std::string man_item(const std::string& head, std::string_view text) {
  return concat(".TP\n", head, "\n", troff(text), "\n");
}

std::string man_block(const FooterBlock& block) {
  return block.is_verbatim ? concat(".PP\n.EX\n", troff(block.text), "\n.EE\n")
                           : concat(".PP\n", troff(block.text), "\n");
}

std::string man_footer(std::string_view footer) {
  std::string text;
  for (const FooterBlock& block : footer_blocks(footer)) text += man_block(block);
  return text;
}

// The sections of the examples and of the other text.
std::string man_footer_sections(std::string_view footer) {
  std::string examples, notes;
  const std::vector<FooterBlock> blocks = footer_blocks(footer);
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (begin_with_examples(std::span(blocks).subspan(i)))
      examples += man_block(blocks[++i]);
    else
      notes += man_block(blocks[i]);
  }
  if (!notes.empty()) notes = ".SH NOTES\n" + notes;
  return notes + (examples.empty() ? "" : ".SH EXAMPLES\n" + examples);
}

std::string man_option(const OptionEntry& option) {
  std::string head = bold(option.name);
  if (!option.short_name.empty()) head = concat(bold(option.short_name), ", ", head);
  if (!option.is_flag) head += " " + italic(option.type);
  if (option.required) head += " (required)";
  std::string help = option.help;
  if (!option.range.empty()) help += concat(" (", option.range, ")");
  if (!option.standard.empty()) help += concat(" [", option.standard, "]");
  return man_item(head, help);
}

std::string man_options(const CommandEntry& command) {
  std::string text;
  const std::vector<std::string> groups = option_groups(command);
  for (const std::string& group : groups) {
    std::string items;
    for (const OptionEntry& option : command.options) {
      const bool is_said_once = option.name == "--help" && !command.name.empty();
      if (option.group == group && !is_said_once) items += man_option(option);
    }
    const bool has_title = groups.size() > 1 && !items.empty();
    text += (has_title ? concat(".PP\n", italic(group), "\n") : "") + items;
  }
  return text;
}

std::string man_usage(const CommandEntry& command) {
  std::string line = bold(concat("finetune ", command.name));
  if (!command.commands.empty()) line += " [" + italic("COMMAND") + "]";
  for (const OptionEntry& argument : command.arguments) {
    line += argument.required ? " " + italic(argument.type) : " [" + italic(argument.type) + "]";
  }
  for (const OptionEntry& option : command.options) {
    if (option.required) line += concat(" ", bold(option.name), " ", italic(option.type));
  }
  return concat(line, " [", italic("OPTIONS"), "]\n");
}

std::string man_arguments(const CommandEntry& command) {
  std::string text;
  for (const OptionEntry& argument : command.arguments) {
    if (!argument.help.empty()) text += man_item(italic(argument.type), argument.help);
  }
  return text;
}

std::string man_inner_command(const CommandEntry& command) {
  return concat(".SS ", troff(command.name), "\n", troff(command.help), ".\n.PP\n",
                man_usage(command), man_arguments(command), man_options(command),
                man_footer(command.footer));
}

std::string man_title(std::string_view name, std::string_view version, std::string_view purpose) {
  std::string upper(name);
  for (char& c : upper) c = 'a' <= c && c <= 'z' ? char(c - 'a' + 'A') : c;
  return concat(".\\\" Printed by `finetune help --man`.\n.TH ", troff(upper),
                " 1 \"\" \"finetune ", version, "\" \"User Commands\"\n.SH NAME\n", troff(name),
                " \\- ", troff(purpose), "\n.SH SYNOPSIS\n");
}

std::string man_environment() {
  std::string text = ".SH ENVIRONMENT\n";
  for (const Switch& each : kSwitches) {
    text += man_item(bold(each.name), concat(each.meaning, " (", each.values, ")"));
  }
  return text;
}

std::string man_exit_status() {
  std::string text = ".SH \"EXIT STATUS\"\n";
  for (const ExitCodeEntry& each : kExitCodes) {
    text += man_item(bold(concat(int(each.code))), each.meaning);
  }
  return text;
}

}  // namespace

std::string man_page(const CommandEntry& program, std::string_view version) {
  std::string text = concat(
      man_title("finetune", version, "fine-tunes BERT on your data"), bold("finetune"), " ",
      italic("COMMAND"), " [", italic("OPTIONS"), "]\n.SH DESCRIPTION\n", troff(program.help),
      "\nLong options take their value as the next word or after\n.BR = .\n"
      "Results go to standard output, everything else to standard error.\nA default is in "
      "[brackets].\nEvery command takes\n.BR \\-\\-help ,\nand has a page of its own.\n",
      man_options(program), ".SH COMMANDS\n");
  for (const CommandEntry& command : program.commands) {
    text += man_item(concat(bold("finetune-" + command.name), "(1)"), command.help);
  }
  return concat(text, man_environment(), man_exit_status(), ".SH EXAMPLES\n",
                man_footer(program.footer));
}

std::string man_page_of(const CommandEntry& command, std::string_view version) {
  std::string text =
      concat(man_title("finetune-" + command.name, version, command.help), man_usage(command));
  const std::string options = man_arguments(command) + man_options(command);
  if (!options.empty()) text += ".SH OPTIONS\n" + options;
  if (!command.commands.empty()) text += ".SH COMMANDS\n";
  for (const CommandEntry& inner : command.commands) text += man_inner_command(inner);
  text += man_footer_sections(command.footer);
  return concat(text, ".SH \"SEE ALSO\"\n", bold("finetune"), "(1): environment, exit codes\n");
}

}  // namespace finetune
