// How the command line speaks: the overview, and mistakes in one clear line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/parser.h"

namespace CLI {
class ParseError;
}

namespace finetune {

// After the subcommands are added: of an option of one value that is given twice the last one
// counts.
void let_last_value_count(CLI::App& app);

// The commands with a line each, for a call without arguments.
std::string overview(const CLI::App& app);

// Removes `all` behind --help; returns whether it was there.
bool take_help_all(std::vector<std::string>& arguments);

// Error(usage) for a command or an option that does not exist, which names ours where another
// program's was meant, else the nearest one; for words without their options, with the line to
// type.
void check_names(const CLI::App& app, const std::vector<std::string>& arguments);

// What a failed parse was about, in our words.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace finetune
