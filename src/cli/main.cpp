// The front door: dispatches to a subcommand and turns errors into one line and an exit code.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/command.h"
#include "core/error.h"
#include "core/log.h"

namespace {

using finetune::concat;
using finetune::ExitCode;

int fail(ExitCode code, const std::string& message) {
  std::string line = "finetune: error: ";
  for (char c : message) line += c == '\n' ? std::string("\\n") : std::string(1, c);  // one line
  finetune::clear_progress();
  std::fprintf(stderr, "%s\n", line.c_str());
  finetune::log_to_file(line);
  return int(code);
}

// A stream that the caller closed would lend its number to the next file that is opened, and our
// messages would land in it.
void open_standard_streams() {
  int descriptor = ::open("/dev/null", O_RDWR);
  while (descriptor >= 0 && descriptor <= 2) descriptor = ::open("/dev/null", O_RDWR);
  if (descriptor > 2) ::close(descriptor);
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

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  CLI::App app{"Fine-tunes BERT for text classification and question answering.", "finetune"};
  app.set_version_flag("--version", FINETUNE_VERSION);
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
  finetune::add_doctor_command(app, exit_code);
  try {
    auto arguments = finetune::with_config_file(normalized_arguments(argc, argv));
    std::reverse(arguments.begin(), arguments.end());  // the order in which CLI11 takes them
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return fail(ExitCode::usage, error.what());
  } catch (const finetune::Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::device, "out of memory; a smaller --micro-batch-tokens needs less");
  } catch (const std::exception& error) {
    return fail(ExitCode::internal, error.what());
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    return fail(ExitCode::model, concat("standard output: cannot be written: ", std::strerror(errno)));
  }
  return exit_code;
}
