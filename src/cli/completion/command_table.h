// Commands and options as the parser knows them: what completion scripts and the man page are made
// of.
#pragma once

#include <string>
#include <vector>

#include "cli/parser.h"

namespace finetune {

// What stands after an option, by the name of its type: "auto|cpu|cuda", "DIR", "FILE...", "N|all".
struct ValueKind {
  std::vector<std::string> words;  // that are offered
  bool files = false, directories = false;
};

struct OptionEntry {
  std::string name;        // "--model"; of an argument "FILE"
  std::string short_name;  // "-h", or empty
  std::string type;        // as --help has it, empty for a flag
  std::string help;        // a sentence without full stop
  std::string standard;    // the default, or empty
  std::string range;       // of a number "at least 1", or empty
  std::string group;
  bool required = false, is_flag = false;
  bool may_be_bare = false;    // its value may be left out
  bool takes_several = false;  // words after one mention
  bool may_repeat = false;     // and all mentions count
  ValueKind kind;
};

struct CommandEntry {
  // Of "bench step" step.
  std::string last_word() const { return name.substr(name.rfind(' ') + 1); }

  std::string name;  // "bench step"; empty for the program
  std::string help, footer;
  std::vector<OptionEntry> options, arguments;
  std::vector<CommandEntry> commands;
};

// Of the whole command line.
CommandEntry describe(const Subcommand& program);

ValueKind kind_of_type(const std::string& type);

// All commands, outer ones before inner ones, without the program itself.
std::vector<CommandEntry> all_commands(const CommandEntry& program);

}  // namespace finetune
