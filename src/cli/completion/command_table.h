// Commands and options, read from the parser, for completion, the manual and the reference.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/parser.h"

namespace finetune {

// The values that a shell offers, by an option's type: "auto|cpu|cuda", "DIR", "FILE...", "N|all".
struct ValueKind {
  std::vector<std::string> words;
  bool files = false, directories = false;
};

struct OptionEntry {
  std::string name;        // "--model", or "FILE" for an argument
  std::string short_name;  // "-h", or empty
  std::string type;        // as in --help; empty for a flag
  std::string help;        // a sentence without full stop
  std::string standard;    // the default, or empty
  std::string range;       // "at least 1", or empty
  std::string group;
  bool required = false, is_flag = false;
  bool is_common = false;      // the short --help shows it
  bool may_be_bare = false;    // the value is optional
  bool takes_several = false;  // several values after one name
  bool may_repeat = false;     // all occurrences count, not only the last
  ValueKind kind;
};

// A part of the text after the options: examples, which keep their lines, or a paragraph.
struct FooterBlock {
  std::string text;
  bool is_verbatim = false;
};

struct CommandEntry {
  // "step" for "bench step".
  std::string last_word() const { return name.substr(name.rfind(' ') + 1); }

  std::string name;  // "bench step"; empty for the program
  std::string help, footer;
  std::vector<OptionEntry> options, arguments;
  std::vector<CommandEntry> commands;
};

// Describes the program with all its commands.
CommandEntry describe(const Subcommand& program);
// After parsing: describes the command that was given, or the program if none was.
CommandEntry describe_given(const Subcommand& program);

// Lines that begin with two blanks are verbatim; other lines are joined to paragraphs.
std::vector<FooterBlock> footer_blocks(std::string_view footer);

ValueKind kind_of_type(const std::string& type);

// The headings of a command's options, each once: "Options" first.
std::vector<std::string> option_groups(const CommandEntry& command);

// Whether these blocks begin with a heading such as "Examples:" and the examples.
bool begin_with_examples(std::span<const FooterBlock> blocks);

// Returns all commands in order: "bench" before "bench step". The program itself is left out.
std::vector<CommandEntry> all_commands(const CommandEntry& program);

}  // namespace finetune
