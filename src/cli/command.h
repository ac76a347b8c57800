// A subcommand adds itself to the program; its callback sets the exit code.
#pragma once

#include <string>
#include <vector>

#include "cli/parser.h"

namespace finetune {

struct TrainOptions;

void add_train_command(Subcommand program, int& exit_code);
void add_adapt_command(Subcommand program, int& exit_code);
void add_sweep_command(Subcommand program, int& exit_code);
void add_evaluate_command(Subcommand program, int& exit_code);
void add_predict_command(Subcommand program, int& exit_code);
void add_next_command(Subcommand program, int& exit_code);
void add_tokenize_command(Subcommand program, int& exit_code);
void add_inspect_command(Subcommand program, int& exit_code);
void add_convert_command(Subcommand program, int& exit_code);
void add_bench_command(Subcommand program, int& exit_code);
void add_check_command(Subcommand program, int& exit_code);
void add_compare_command(Subcommand program, int& exit_code);
void add_report_command(Subcommand program, int& exit_code);
void add_score_command(Subcommand program, int& exit_code);
void add_plan_command(Subcommand program, int& exit_code);
void add_doctor_command(Subcommand program, int& exit_code);
void add_completion_command(Subcommand program, int& exit_code);
void add_help_command(Subcommand program, int& exit_code);
// Adds all commands of the program.
void add_commands(Subcommand program, int& exit_code);

// Runs train or adapt, and prints the result to standard output.
void run_training_command(const TrainOptions& options, int& exit_code);

}  // namespace finetune
