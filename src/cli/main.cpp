// The entry point: dispatches to a subcommand and turns errors into one line and an exit code.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/exit_code_table.h"
#include "cli/options/config_options.h"
#include "cli/standard_output.h"
#include "cli/usage.h"
#include "cli/world.h"
#include "comm/agreement.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/files/file_kind.h"
#include "core/files/unfinished_files.h"
#include "core/log.h"
#include "core/option_advice.h"
#include "core/terminal_line.h"
#include "core/text/printable.h"
#include "tasks/registry.h"
#include "train/signals.h"

namespace {

using finetune::ExitCode;

// Prints an error in one line. Control characters in values and paths are escaped.
void report(const std::string& message) {
  const std::string text = finetune::printable_message(message);
  finetune::clear_progress();
  constexpr std::string_view kName = "finetune: ", kTitle = "error:";
  const std::string line = finetune::concat(kName, kTitle, " ", text);
  std::string shown = finetune::prose_for(STDERR_FILENO, line + "\n");
  if (finetune::has_colors()) shown.replace(kName.size(), kTitle.size(), "\033[31merror:\033[0m");
  std::fputs(shown.c_str(), stderr);
  finetune::log_to_file(line);
}

// Handles an error that only this process may know: reports it, unless another process has reported
// one, and ends all processes.
int fail(finetune::Communicator& world, ExitCode code, const std::string& message) {
  if (world.size() == 1) {
    report(message);
    return int(code);
  }
  if (world.claim_error_report()) {
    report(finetune::concat(world.name(world.rank()), ": ", message, world.stopped()));
  }
  world.abort(int(code));
  return int(code);  // not reached
}

// Whether all processes run the command. Rank 0 alone runs the other commands.
bool is_for_all(const std::string& command) {
  for (const char* name :
       {"train", "adapt", "sweep", "evaluate", "predict", "next", "bench", "doctor"}) {
    if (command == name) return true;
  }
  return false;
}

// Opens /dev/null for closed standard streams, so that no file of ours gets their numbers. Reading
// closed input stays an error, and so does closed output if the results go nowhere else. Ignores
// SIGPIPE and SIGXFSZ, so that the write fails instead. The caller may have ignored SIGCHLD, and
// waitpid() would then fail.
void prepare_standard_streams(bool may_lose_output) {
  const int instead[] = {O_WRONLY, may_lose_output ? O_RDWR : O_RDONLY, O_RDWR};
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    const bool is_closed = ::fcntl(descriptor, F_GETFD) < 0;
    if (is_closed && ::open("/dev/null", instead[descriptor]) < 0) break;  // the lowest is taken
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);
}

// Whether the command trains. Signal handlers are then installed before the processes connect, so
// that an early signal counts.
bool has_runs(std::string_view command) {
  return command == "train" || command == "adapt" || command == "sweep";
}

// Whether the command's results name the date.
bool writes_dates(std::string_view command) {
  return has_runs(command) || command == "evaluate";
}

// Whether files or the exit code have the results that the command prints, too.
bool has_results_elsewhere(std::string_view command) {
  return has_runs(command) || command == "evaluate" || command == "convert" ||
         command == "report" || command == "check";
}

std::terminate_handler terminate_of_library = nullptr;

// Memory may run out where nothing can be caught: destructors of JSON values allocate some.
[[noreturn]] void end_without_memory() {
  try {
    if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    constexpr std::string_view kLine = "finetune: error: out of memory\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kLine.data(), kLine.size());
    ::_exit(int(ExitCode::device));
  } catch (...) {
  }
  terminate_of_library();  // says what was thrown
  std::abort();
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

constexpr const char* kExamples =
    "Examples:\n"
    "  finetune train --model minilm --train train.csv --eval dev.csv --output runs/a\n"
    "  finetune adapt --model bert-base-uncased --text texts.txt --output runs/bank\n"
    "  finetune evaluate --model runs/a/model --data test.csv\n"
    "  finetune predict --model runs/a/model --input new.csv --output labels.csv\n"
    "\n"
    "finetune COMMAND --help shows a command's options and more examples.\n"
    "\n";

// Two lines.
std::string exit_codes() {
  std::string text = "Exit codes:";
  for (const finetune::ExitCodeEntry& each : finetune::kExitCodes) {
    const bool first = each.code == ExitCode::done, breaks = each.code == ExitCode::assertion;
    text +=
        finetune::concat(first ? "" : ",", breaks ? "\n" : " ", int(each.code), " ", each.meaning);
  }
  return text + ".";
}

}  // namespace

namespace finetune {
namespace {

// Rewrites `help COMMAND` as `COMMAND --help`, and `help COMMAND all` as `COMMAND --help all`.
std::vector<std::string> with_help_as_option(std::vector<std::string> arguments) {
  if (arguments.empty() || arguments[0] != "help") return arguments;
  const bool has_own_option = arguments.size() >= 2 && arguments[1].starts_with("--");
  if (has_own_option) return arguments;
  arguments.erase(arguments.begin());
  const bool whole = !arguments.empty() && arguments.back() == "all";
  arguments.insert(arguments.end() - int(whole), "--help");
  return arguments;
}

// Rank 0 logs the warnings of the other processes, too. Returns whether any process was warned.
// Collective.
bool share_warnings(Communicator& world) {
  uint8_t warned = !logged_warnings().empty();
  if (world.size() == 1) return warned;
  if (world.rank() > 0) world.set_timeout(0);  // rank 0 may still be at work
  const std::string own = join(logged_warnings(), "\n");
  const auto all = world.gather({reinterpret_cast<const uint8_t*>(own.data()), size_t(own.size())});
  for (size_t rank = 1; rank < all.size(); ++rank) {
    const std::string text(all[rank].begin(), all[rank].end());
    for (std::string_view line : split(text, '\n')) {
      if (!line.empty()) warn(line);
    }
  }
  warned = !logged_warnings().empty();
  world.broadcast(&warned, sizeof warned, 0);
  return warned;
}

// Runs the command line and returns the exit code.
int run(std::vector<std::string> arguments, Communicator& world) {
  Parser parser("finetune", "Fine-tunes BERT for text classification and question answering.",
                FINETUNE_VERSION);
  int exit_code = 0;
  bool fails_on_warning = false;
  add_commands(parser.root(), exit_code);
  parser.add_flag_to_commands("--fail-on-warning", fails_on_warning,
                              "exit with code 7 if there was a warning; the work is done all the "
                              "same");
  parser.root().footer(kExamples + exit_codes());
  arguments = with_help_as_option(std::move(arguments));
  const bool whole_help = take_help_all(arguments);
  if (arguments.empty()) write_standard_output(parser.overview());
  parser.check_names(arguments);
  set_command_options(parser.options_for(arguments));
  if (!arguments.empty() && writes_dates(arguments[0])) date_now();  // checks $SOURCE_DATE_EPOCH
  const bool is_shared = !arguments.empty() && is_for_all(arguments[0]);
  const auto text = parser.parse(with_config_file(std::move(arguments), world), whole_help);
  if (text && world.rank() == 0) write_standard_output(*text);
  flush_standard_output();
  open_console(true);  // shows warnings of a command without a log
  const bool warned = is_shared ? share_warnings(world) : !logged_warnings().empty();
  if (fails_on_warning && warned && exit_code == 0) exit_code = int(ExitCode::assertion);
  return exit_code;
}

// Marks this process as done, so that no process waits for it, and returns `code`. Collective.
int finish(Communicator& world, int code) {
  world.finish();
  return code;
}

// Returns advice for a command that ran out of memory.
const char* memory_advice(const std::vector<std::string>& arguments) {
  const bool has_micro_batches =
      !arguments.empty() && (has_runs(arguments[0]) || arguments[0] == "bench");
  return has_micro_batches ? "; a smaller --micro-batch-tokens needs less" : "";
}

int run_and_report(std::vector<std::string> arguments, Communicator& world) {
  const char* advice = memory_advice(arguments);
  try {
    return finish(world, run(std::move(arguments), world));
  } catch (const ReaderGone&) {
    if (world.size() > 1) world.abort(kReaderGoneCode);
    return kReaderGoneCode;
  } catch (const PeerFailed& peer) {
    return finish(world, int(peer.code));
  } catch (const AgreedError& error) {
    report(error.what());
    return finish(world, int(error.code()));
  } catch (const std::exception& failure) {
    const Error error = error_of(failure, advice);
    return fail(world, error.code(), error.what());
  }
}

}  // namespace
}  // namespace finetune

int main(int argc, char** argv) {
  if (const int status = finetune::serve_task_process(argc, argv); status >= 0) return status;
  terminate_of_library = std::set_terminate(end_without_memory);
  const std::string_view command = argc > 1 ? argv[1] : "";
  prepare_standard_streams(has_results_elsewhere(command));
  finetune::remove_unfinished_on_signals();
  if (has_runs(command)) finetune::signals_of_runs();
  try {
    finetune::Communicator& world = finetune::world();
    std::vector<std::string> arguments = normalized_arguments(argc, argv);
    if (world.rank() > 0) {
      finetune::mute_log();
      // The other processes wait without a limit while rank 0 works alone.
      world.set_patient(true);
      if (arguments.empty() || !is_for_all(arguments[0])) return finetune::finish(world, 0);
    }
    return finetune::run_and_report(std::move(arguments), world);
  } catch (const finetune::PeerFailed& peer) {
    return int(peer.code);
  } catch (const std::exception& failure) {  // the processes could not find each other
    const finetune::Error error = finetune::error_of(failure);
    report(error.what());
    return int(error.code());
  }
}
