// Completion scripts for shells, the manual page and the command reference.
#pragma once

#include <string>
#include <string_view>

#include "cli/completion/command_table.h"

namespace finetune {

std::string bash_script(const CommandEntry& program);
std::string zsh_script(const CommandEntry& program);
std::string fish_script(const CommandEntry& program);
// For man(1): every command with its options, the environment and the exit codes.
std::string man_page(const CommandEntry& program, std::string_view version);
// docs/reference/commands.md: every command with its options, the environment and exit codes.
std::string reference_page(const CommandEntry& program);

}  // namespace finetune
