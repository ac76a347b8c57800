// The command line of all commands, whose words are parsed and whose commands are not run.
#include "fuzz/targets/run/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/command.h"
#include "cli/usage.h"
#include "core/error.h"

namespace finetune::fuzz {
namespace {

struct Parsed {};

// Commands own what their options refer to, so that their actions cannot be taken away.
struct ParsedOnly : CLI::App {
  using CLI::App::App;
  void pre_callback() override { throw Parsed(); }
};

// As the program does it (cli/parser.cpp), but for what a command then does.
void parse(std::vector<std::string> words) {
  ParsedOnly app("", "finetune");
  int exit_code = 0;
  set_help_style(app);
  app.set_version_flag("-V,--version", "0", "");
  app.require_subcommand(1);
  app.fallthrough(false);
  for (const auto add :
       {add_train_command, add_sweep_command, add_evaluate_command, add_predict_command,
        add_tokenize_command, add_inspect_command, add_convert_command, add_compare_command,
        add_report_command, add_score_command, add_bench_command, add_plan_command,
        add_doctor_command}) {
    add(Subcommand(&app), exit_code);
  }
  check_names(app, words);
  words = with_config_file(std::move(words));
  let_last_value_count(app);
  std::reverse(words.begin(), words.end());
  try {
    app.parse(std::move(words));
  } catch (const Parsed&) {
    return;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      require(!app.help().empty(), "no help");
      return;
    }
    require(!usage_message(app, error).empty(), "a mistake without a message");
  }
}

// The words, then the file that --config names.
void check_command_line(std::string_view input) {
  const auto parts = parts_of(input, 2);
  const fs::path config = scratch_file("config.toml", parts[1]);
  std::vector<std::string> words = words_of(parts[0]);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with("--config=")) words[i] = concat("--config=", config.string());
    if (words[i] == "--config" && i + 1 < words.size()) words[i + 1] = config.string();
  }
  parse(std::move(words));
}

const Registration kRegistration({.name = "command_line", .run = check_command_line});

}  // namespace
}  // namespace finetune::fuzz
