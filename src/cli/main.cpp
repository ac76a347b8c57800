// The front door: dispatches to a subcommand and turns errors into one line and an exit code.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/standard_output.h"
#include "cli/usage.h"
#include "core/error.h"
#include "core/log.h"

namespace {

using finetune::ExitCode;

int fail(ExitCode code, const std::string& message) {
  std::string line = "finetune: error: ";
  for (char c : message) {  // one line, whatever a value says
    if (c == '\n' || c == '\r')
      line += c == '\n' ? "\\n" : "\\r";
    else
      line += c;
  }
  finetune::clear_progress();
  std::fprintf(stderr, "%s\n", line.c_str());
  finetune::log_to_file(line);
  return int(code);
}

// A file must not become the standard output or error of a caller that has closed them, and a
// reader that goes away must not stop a run.
void prepare_standard_streams() {
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= 2) descriptor = ::open("/dev/null", O_RDWR);
  if (descriptor > 2) ::close(descriptor);
  std::signal(SIGPIPE, SIG_IGN);
}

// Long options accept `_` for `-`.
std::vector<std::string> normalized_arguments(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument.rfind("--", 0) == 0 && argument.size() > 2) {
      for (size_t k = 2; k < argument.size() && argument[k] != '='; ++k) {
        if (argument[k] == '_') argument[k] = '-';
      }
    }
    arguments.push_back(argument);
  }
  return arguments;
}

constexpr const char* kFooter =
    "Examples:\n"
    "  finetune train --model bert-base-uncased --train train.csv --eval dev.csv --output runs/a\n"
    "  finetune evaluate --model runs/a/model --data test.csv\n"
    "  finetune predict --model runs/a/model --input new.csv --output labels.csv\n"
    "\n"
    "finetune COMMAND --help shows a command's options and more examples.\n"
    "Exit codes: 0 done, 2 usage, 3 data, 4 model or output, 5 device or memory, 6 diverged,\n"
    "7 an --assert failed, 8 time limit, 85 checkpointed on a signal, 130 interrupted, 1 internal.";

}  // namespace

int main(int argc, char** argv) {
  prepare_standard_streams();
  CLI::App app{"Fine-tunes BERT for text classification and question answering.", "finetune"};
  finetune::set_help_style(app);
  app.set_version_flag("--version", FINETUNE_VERSION, "show the version");
  app.require_subcommand(1);
  app.fallthrough(false);
  int exit_code = 0;
  finetune::add_train_command(app, exit_code);
  finetune::add_evaluate_command(app, exit_code);
  finetune::add_predict_command(app, exit_code);
  finetune::add_tokenize_command(app, exit_code);
  finetune::add_inspect_command(app, exit_code);
  finetune::add_convert_command(app, exit_code);
  finetune::add_score_command(app, exit_code);
  finetune::add_bench_command(app, exit_code);
  finetune::add_plan_command(app, exit_code);
  finetune::add_doctor_command(app, exit_code);
  app.footer(kFooter);
  finetune::let_last_value_count(app);
  try {
    auto arguments = normalized_arguments(argc, argv);
    finetune::check_names(app, arguments);
    arguments = finetune::with_config_file(std::move(arguments));
    std::reverse(arguments.begin(), arguments.end());  // the order in which CLI11 takes them
    try {
      app.parse(std::move(arguments));
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() != 0) {
        return fail(ExitCode::usage, finetune::usage_message(app, error));
      }
      const bool version = dynamic_cast<const CLI::CallForVersion*>(&error) != nullptr;
      finetune::write_standard_output(version ? std::string(error.what()) + "\n" : app.help());
    }
    finetune::flush_standard_output();
  } catch (const finetune::ReaderGone&) {
    return finetune::kReaderGoneCode;
  } catch (const finetune::Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::device, "out of memory; a smaller --micro-batch-tokens needs less");
  } catch (const std::exception& error) {
    return fail(ExitCode::internal, error.what());
  }
  return exit_code;
}
