// Reads commands and options out of the parser.
#include "cli/completion/command_table.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "core/text/text.h"
#include "train/options/option_words.h"
#include "train/options/table/option_table.h"

namespace finetune {
namespace {

// Whether a piece of a type is a literal word: "tiny" in "tiny|minilm|DIR", but not "DIR".
bool is_word(std::string_view piece) {
  auto fits = [](char c) { return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '_'; };
  return !piece.empty() && std::all_of(piece.begin(), piece.end(), fits);
}

// The bit of a command whose options are rows of train's table; 0 for other commands.
Commands command_of(const std::string& name) {
  const std::pair<std::string_view, Commands> known[] = {
      {"train", commands::train},       {"adapt", commands::adapt},
      {"plan", commands::plan},         {"check", commands::check},
      {"evaluate", commands::evaluate}, {"predict", commands::predict},
      {"next", commands::next},         {"tokenize", commands::tokenize},
      {"doctor", commands::doctor},     {"bench layout", commands::bench_layout}};
  for (const auto& [word, command] : known) {
    if (word == name) return command;
  }
  return 0;
}

// The range of an option, or "" if it is not a row of the table.
std::string range_of(const std::string& option, const std::string& command) {
  if (!option.starts_with("--")) return "";
  const TrainOption* row = find_train_option(std::string_view(option).substr(2));
  const bool is_of_command = row && (row->info.commands & command_of(command)) != 0;
  return is_of_command ? range_words(row->info.range) : "";
}

OptionEntry describe_option(const CLI::Option& option, const std::string& command) {
  OptionEntry entry;
  entry.type = option.get_type_name();
  entry.name = option.get_positional() ? entry.type : option.get_name();
  if (!option.get_snames().empty()) entry.short_name = "-" + option.get_snames().front();
  if (!option.get_lnames().empty()) entry.name = "--" + option.get_lnames().front();
  entry.help = option.get_description();
  entry.standard = option.get_expected_max() > 0 ? option.get_default_str() : "";
  entry.group = option.get_group();
  entry.required = option.get_required();
  entry.is_common = !option.get_configurable() && entry.name != "--help";
  entry.is_flag = option.get_expected_max() == 0;
  entry.may_be_bare = !entry.is_flag && option.get_expected_min() == 0;
  entry.takes_several = option.get_expected_max() > 1;
  entry.may_repeat = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  entry.range = range_of(entry.name, command);
  entry.kind = kind_of_type(entry.type);
  return entry;
}

CommandEntry describe_command(const CLI::App& app, const std::string& name) {
  CommandEntry entry{name, app.get_description(), app.get_footer(), {}, {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    (option->get_positional() ? entry.arguments : entry.options)
        .push_back(describe_option(*option, name));
  }
  for (const CLI::App* inner : app.get_subcommands([](const CLI::App*) { return true; })) {
    entry.commands.push_back(
        describe_command(*inner, concat(name, name.empty() ? "" : " ", inner->get_name())));
  }
  return entry;
}

void append_commands(const CommandEntry& outer, std::vector<CommandEntry>& all) {
  for (const CommandEntry& command : outer.commands) {
    all.push_back(command);
    append_commands(command, all);
  }
}

}  // namespace

std::vector<FooterBlock> footer_blocks(std::string_view footer) {
  std::vector<FooterBlock> blocks;
  bool continues = false;
  for (std::string_view line : split(footer, '\n')) {
    const bool is_verbatim = line.starts_with("  ");
    if (!line.empty()) {
      if (!continues || blocks.back().is_verbatim != is_verbatim)
        blocks.push_back({"", is_verbatim});
      std::string& text = blocks.back().text;
      text += concat(text.empty() ? "" : is_verbatim ? "\n" : " ", line);
    }
    continues = !line.empty();
  }
  return blocks;
}

bool begin_with_examples(std::span<const FooterBlock> blocks) {
  return blocks.size() > 1 && !blocks[0].is_verbatim && blocks[1].is_verbatim &&
         ends_with_ignoring_case(blocks[0].text, "examples:");
}

std::vector<std::string> option_groups(const CommandEntry& command) {
  std::vector<std::string> groups{"Options"};
  for (const OptionEntry& option : command.options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  return groups;
}

ValueKind kind_of_type(const std::string& type) {
  ValueKind kind;
  for (std::string_view piece : split(type, '|')) {
    if (piece.ends_with("...")) piece.remove_suffix(3);
    if (piece == "FILE" || piece == "GRID") kind.files = true;
    if (piece == "DIR") kind.directories = true;
    if (is_word(piece)) kind.words.emplace_back(piece);
  }
  return kind;
}

CommandEntry describe(const Subcommand& program) {
  CommandEntry entry = describe_command(program.app(), "");
  for (CommandEntry& help : entry.commands) {
    if (help.name != "help") continue;
    for (const CommandEntry& each : entry.commands) {
      help.arguments.at(0).kind.words.push_back(each.name);
    }
  }
  return entry;
}

CommandEntry describe_given(const Subcommand& program) {
  const CLI::App* app = &program.app();
  std::string name;
  for (auto given = app->get_subcommands(); !given.empty(); given = app->get_subcommands()) {
    app = given.front();
    name += concat(name.empty() ? "" : " ", app->get_name());
  }
  return describe_command(*app, name);
}

std::vector<CommandEntry> all_commands(const CommandEntry& program) {
  std::vector<CommandEntry> all;
  append_commands(program, all);
  return all;
}

}  // namespace finetune
