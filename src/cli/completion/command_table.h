// Commands and options, read from the parser, for completion, the manual and the reference.
#pragma once

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
  bool may_be_bare = false;    // the value is optional
  bool takes_several = false;  // several values after one name
  bool may_repeat = false;     // all occurrences count, not only the last
  ValueKind kind;
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

ValueKind kind_of_type(const std::string& type);

// Returns all commands in order: "bench" before "bench step". The program itself is left out.
std::vector<CommandEntry> all_commands(const CommandEntry& program);

}  // namespace finetune
