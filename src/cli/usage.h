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

// Error(usage) for an unknown command or option. It names our option if another program has the
// given one, else the nearest name. For words without options, the error is the line to type.
void check_names(const CLI::App& app, const std::vector<std::string>& arguments);

// Returns the message of a failed parse, in our words.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace finetune
