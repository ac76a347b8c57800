// Parses command lines of all commands without running them.
#include "fuzz/targets/run/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/command.h"
#include "cli/options/config_options.h"
#include "cli/usage.h"
#include "comm/communicator.h"
#include "core/error.h"

namespace finetune::fuzz {
namespace {

struct Parsed {};

// Commands own the variables of their options, so their actions cannot be removed.
struct ParsedOnly : CLI::App {
  using CLI::App::App;
  void pre_callback() override { throw Parsed(); }
};

struct Command {
  const char* name;
  void (*add)(Subcommand program, int& exit_code);
};
constexpr Command kCommands[] = {
    {"train", add_train_command},       {"sweep", add_sweep_command},
    {"evaluate", add_evaluate_command}, {"predict", add_predict_command},
    {"tokenize", add_tokenize_command}, {"inspect", add_inspect_command},
    {"convert", add_convert_command},   {"compare", add_compare_command},
    {"report", add_report_command},     {"score", add_score_command},
    {"bench", add_bench_command},       {"plan", add_plan_command},
    {"doctor", add_doctor_command},
};

// As in cli/parser.cpp, without running the command. Creating hundreds of options takes longer than
// parsing, so commands that the words do not start with get none.
void parse(std::vector<std::string> words) {
  ParsedOnly app("", "finetune");
  int exit_code = 0;
  set_help_style(app);
  app.set_version_flag("-V,--version", "0", "");
  app.require_subcommand(1);
  app.fallthrough(false);
  for (const Command& command : kCommands) {
    if (!words.empty() && words[0] == command.name) {
      command.add(Subcommand(&app), exit_code);
    } else {
      app.add_subcommand(command.name);
    }
  }
  check_names(app, words);
  const auto solo = make_solo_communicator();
  words = with_config_file(std::move(words), *solo);
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

const Registration kCommandLineTarget({.name = "command_line", .run = check_command_line});

}  // namespace
}  // namespace finetune::fuzz
