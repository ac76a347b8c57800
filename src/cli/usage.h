// Messages of the command line: the overview, and usage errors in one clear line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/parser.h"

namespace CLI {
class ParseError;
}

namespace finetune {

// Call it after the subcommands are added. If an option of one value is given twice, the last
// value then counts.
void let_last_value_count(CLI::App& app);

// Lists the commands, one per line, for a call without arguments.
std::string overview(const CLI::App& app);

// Removes `all` behind --help; returns whether it was there.
bool take_help_all(std::vector<std::string>& arguments);

// Error(usage) for arguments that cannot be parsed. For another program's option the message names
// finetune's, for a misspelt one the nearest. If words stand where options are needed, it shows the
// corrected command.
void check_names(const CLI::App& app, const std::vector<std::string>& arguments);

// Returns this program's message for an error of CLI11's parser.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace finetune
