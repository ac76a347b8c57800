// Scripts with which shells complete the command line, and the manual page.
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

}  // namespace finetune
