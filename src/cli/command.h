// A subcommand adds itself to the application; its callback sets the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace finetune {

void add_train_command(CLI::App& app, int& exit_code);
void add_evaluate_command(CLI::App& app, int& exit_code);
void add_predict_command(CLI::App& app, int& exit_code);
void add_tokenize_command(CLI::App& app, int& exit_code);
void add_inspect_command(CLI::App& app, int& exit_code);
void add_convert_command(CLI::App& app, int& exit_code);
void add_bench_command(CLI::App& app, int& exit_code);
void add_score_command(CLI::App& app, int& exit_code);
void add_plan_command(CLI::App& app, int& exit_code);
void add_doctor_command(CLI::App& app, int& exit_code);

// Arguments of `train` and `plan` with the values of its --config file added where they are not
// given.
std::vector<std::string> with_config_file(std::vector<std::string> arguments);

}  // namespace finetune
