// Completion scripts for shells, help and manual pages, and the command reference.
#pragma once

#include <string>
#include <string_view>

#include "cli/completion/command_table.h"

namespace finetune {

// --help: the whole page if it fits a screen of 40 lines, else the common options and the examples.
std::string help_page(const CommandEntry& command, size_t columns);
// --help all: all options, grouped.
std::string full_help_page(const CommandEntry& command, size_t columns);
std::string bash_script(const CommandEntry& program);
std::string zsh_script(const CommandEntry& program);
std::string fish_script(const CommandEntry& program);
// finetune(1): the commands, the environment and the exit codes.
std::string man_page(const CommandEntry& program, std::string_view version);
// finetune-COMMAND(1): the command's options and those of its own commands.
std::string man_page_of(const CommandEntry& command, std::string_view version);
// docs/reference/commands.md: every command with its options, the environment and exit codes.
std::string reference_page(const CommandEntry& program);

}  // namespace finetune
