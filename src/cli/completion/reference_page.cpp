// The command reference, docs/reference/commands.md, in Markdown.
#include <algorithm>

#include "cli/completion/completion_scripts.h"
#include "cli/exit_code_table.h"
#include "core/switches.h"
#include "core/text/text.h"

namespace finetune {
namespace {

// Escapes text for a cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '|' || c == '<' || c == '*') out += '\\';
    out += c;
  }
  return out;
}

// In a code span only the bar needs an escape.
std::string code(std::string_view text) {
  std::string out = "`";
  for (char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out + "`";
}

// The anchor that GitHub gives a heading: "#bench-step".
std::string anchor(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '-');
  return "#" + name;
}

std::string link(const std::string& name) {
  return concat("[", name, "](", anchor(name), ")");
}

// The introduction describes these.
bool is_in_every_command(const OptionEntry& option) {
  return option.name == "--help" || option.name == "--fail-on-warning";
}

bool is_same(const OptionEntry& a, const OptionEntry& b) {
  return a.name == b.name && a.type == b.type && a.help == b.help && a.standard == b.standard &&
         a.range == b.range && a.required == b.required;
}

bool has(const std::vector<OptionEntry>& options, const OptionEntry& option) {
  return std::any_of(options.begin(), options.end(),
                     [&](const OptionEntry& other) { return is_same(other, option); });
}

// The default in words, "(default: as trained)", at the end of an option's help.
constexpr std::string_view kDefaultInWords = " (default: ";
constexpr std::string_view kRequired = "required: ";

std::string option_row(const OptionEntry& option, bool has_ranges) {
  std::string name = option.is_flag ? option.name : concat(option.name, " ", option.type);
  if (!option.short_name.empty()) name = concat(option.short_name, ", ", name);
  std::string_view help = option.help;
  std::string standard = option.standard.empty() ? "" : code(option.standard);
  const size_t words = help.rfind(kDefaultInWords);
  if (standard.empty() && words != std::string_view::npos && help.ends_with(')')) {
    standard = cell(help.substr(words + kDefaultInWords.size()));
    standard.pop_back();
    help = help.substr(0, words);
  }
  if (help.starts_with(kRequired)) {
    standard = "required";
    help.remove_prefix(kRequired.size());
  }
  if (option.required) standard = "required";
  const std::string range = has_ranges ? concat(option.range, " | ") : "";
  return concat("| ", code(name), " | ", standard, " | ", range, cell(help), " |\n");
}

// Names the options that train's section describes, or says that they are all of train's.
std::string shared_options(const std::vector<OptionEntry>& shared,
                           const std::vector<OptionEntry>& of_train) {
  const auto general = std::count_if(of_train.begin(), of_train.end(), is_in_every_command);
  if (shared.empty()) return "";
  if (shared.size() + size_t(general) == of_train.size())
    return "\nAll options of [train](#train), too.\n";
  std::string names;
  for (const OptionEntry& option : shared)
    names += concat(names.empty() ? "" : ", ", code(option.name));
  return concat("\nAs in [train](#train): ", names, ".\n");
}

// The options of one group, with a column of ranges if one has a range.
std::string option_table(const std::vector<OptionEntry>& options) {
  const bool has_ranges =
      std::any_of(options.begin(), options.end(),
                  [](const OptionEntry& option) { return !option.range.empty(); });
  const std::string& group = options.front().group;
  std::string text = group == "Options" ? "" : concat("\n**", group, "**\n");
  text += has_ranges ? "\n| option | default | range | meaning |\n|---|---|---|---|\n"
                     : "\n| option | default | meaning |\n|---|---|---|\n";
  for (const OptionEntry& option : options) text += option_row(option, has_ranges);
  return text;
}

// One table for each group, then the options that are the same as train's.
std::string options_of(const CommandEntry& command, const std::vector<OptionEntry>& of_train) {
  std::vector<OptionEntry> shared, group;
  std::string text;
  const auto end_group = [&] {
    if (!group.empty()) text += option_table(group);
    group.clear();
  };
  for (const OptionEntry& option : command.options) {
    if (is_in_every_command(option)) continue;
    if (has(of_train, option)) {
      shared.push_back(option);
      continue;
    }
    if (!group.empty() && group.front().group != option.group) end_group();
    group.push_back(option);
  }
  end_group();
  return text + shared_options(shared, of_train);
}

std::string usage_of(const CommandEntry& command) {
  std::string line = concat("finetune ", command.name);
  if (!command.commands.empty()) line += " COMMAND";
  for (const OptionEntry& argument : command.arguments) {
    line += argument.required ? " " + argument.type : concat(" [", argument.type, "]");
  }
  for (const OptionEntry& option : command.options) {
    if (option.required) line += concat(" ", option.name, " ", option.type);
  }
  return concat("\n```\n", line, " [OPTIONS]\n```\n");
}

std::string arguments_of(const CommandEntry& command) {
  std::string text;
  for (const OptionEntry& argument : command.arguments) {
    if (!argument.help.empty()) {
      text += concat("* ", code(argument.type), ": ", cell(argument.help), "\n");
    }
  }
  return text.empty() ? text : "\n" + text;
}

// Returns the text after the options in --help: examples and remarks.
std::string footer_of(std::string_view footer) {
  while (footer.ends_with('\n')) footer.remove_suffix(1);
  return footer.empty() ? "" : concat("\n```text\n", footer, "\n```\n");
}

std::string section_of(const CommandEntry& command, const std::vector<OptionEntry>& of_train) {
  const bool is_inner = command.name.find(' ') != std::string::npos;
  return concat(is_inner ? "\n### " : "\n## ", command.name, "\n\n", command.help, ".\n",
                usage_of(command), arguments_of(command), options_of(command, of_train),
                footer_of(command.footer));
}

std::string environment() {
  std::string text = "\n## Environment\n\n| variable | values | meaning |\n|---|---|---|\n";
  for (const Switch& each : kSwitches) {
    text +=
        concat("| ", code(each.name), " | ", cell(each.values), " | ", cell(each.meaning), " |\n");
  }
  return text;
}

std::string exit_codes() {
  std::string text = "\n## Exit codes\n\n| code | meaning |\n|---|---|\n";
  for (const ExitCodeEntry& each : kExitCodes) {
    text += concat("| ", int(each.code), " | ", cell(each.meaning), " |\n");
  }
  return text + "\n[Files and exit codes](files.md#exit-codes) says more about each.\n";
}

constexpr const char* kIntroduction =
    R"(<!-- generated by `finetune help --markdown`; tests/cli/shipped/reference_test.py compares -->

# Commands

* Names on this page are stable: scripts may rely on them.
* An option's value is the next word, or follows `=`. `_` may replace `-` in names. An empty value is an error: it
  usually means that a shell variable was not set.
* An option marked `classification:`, `qa:` or `mlm:` is an error for other tasks.
* Results go to standard output, everything else to standard error. Nothing prompts.
* `finetune COMMAND --help all` prints a command's section, `finetune help --man COMMAND` its manual page.
* Every command takes `--help`. All that do work take `--fail-on-warning`: exit with code 7 if there was a warning,
  after the work is done.

[Data](data.md), [models](models.md), [files](files.md), [training](training.md) and [results](results.md) explain more.

| command | purpose |
|---|---|
)";

}  // namespace

std::string reference_page(const CommandEntry& program) {
  std::string text = kIntroduction, sections;
  const std::vector<CommandEntry> commands = all_commands(program);
  const auto train = std::find_if(commands.begin(), commands.end(),
                                  [](const CommandEntry& each) { return each.name == "train"; });
  const std::vector<OptionEntry> none;
  for (const CommandEntry& command : commands) {
    text += concat("| ", link(command.name), " | ", cell(command.help), " |\n");
    const bool is_train = train == commands.end() || command.name == train->name;
    sections += section_of(command, is_train ? none : train->options);
  }
  return concat(text, sections, environment(), exit_codes());
}

}  // namespace finetune
