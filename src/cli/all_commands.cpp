// All commands of the program, in the order of --help.
#include "cli/command.h"

namespace finetune {

void add_commands(Subcommand program, int& exit_code) {
  add_train_command(program, exit_code);
  add_adapt_command(program, exit_code);
  add_sweep_command(program, exit_code);
  add_evaluate_command(program, exit_code);
  add_predict_command(program, exit_code);
  add_next_command(program, exit_code);
  add_tokenize_command(program, exit_code);
  add_inspect_command(program, exit_code);
  add_convert_command(program, exit_code);
  add_check_command(program, exit_code);
  add_compare_command(program, exit_code);
  add_report_command(program, exit_code);
  add_score_command(program, exit_code);
  add_bench_command(program, exit_code);
  add_plan_command(program, exit_code);
  add_doctor_command(program, exit_code);
  add_completion_command(program, exit_code);
  add_help_command(program, exit_code);
}

}  // namespace finetune
