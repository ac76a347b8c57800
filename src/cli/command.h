// A subcommand adds itself to the application; its callback sets the exit code.
#pragma once

#include <CLI/CLI.hpp>

namespace finetune {

void add_tokenize_command(CLI::App& app, int& exit_code);
void add_inspect_command(CLI::App& app, int& exit_code);
void add_convert_command(CLI::App& app, int& exit_code);
void add_score_command(CLI::App& app, int& exit_code);

}  // namespace finetune
