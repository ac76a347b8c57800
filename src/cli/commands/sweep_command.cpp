// finetune sweep: all runs of a grid, one table at the end.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include "cli/command.h"
#include "cli/options/option_binding.h"
#include "cli/standard_output.h"
#include "cli/sweep_progress.h"
#include "cli/world.h"
#include "comm/agreement.h"
#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/files/path_advice.h"
#include "core/log.h"
#include "core/terminal_line.h"
#include "core/text/counted.h"
#include "core/text/printable.h"
#include "core/text/shell_word.h"
#include "experiments/compare/comparison_output.h"
#include "experiments/sweep/sweep.h"
#include "experiments/sweep/sweep_directory.h"
#include "experiments/sweep/sweep_plan.h"
#include "tasks/baseline.h"
#include "tasks/scores/result_lines.h"

namespace finetune {
namespace {

constexpr const char* kSweepExamples =
    "Examples:\n"
    "  finetune sweep grid.toml --output runs/sweep     run again: it continues\n"
    "  finetune sweep grid.toml --dry-run               its runs, their time and disk\n"
    "  finetune sweep grid.toml --jobs 4                four runs at a time\n"
    "  finetune sweep grid.toml --halving 3             a third of them goes on\n"
    "  mpirun -n 4 finetune sweep grid.toml             each run on four processes\n"
    "\n"
    "grid.toml holds train's options as --config takes them, and a table of those that differ:\n"
    "  model = \"minilm\"\n"
    "  train = \"train.csv\"\n"
    "  eval = \"dev.csv\"\n"
    "\n"
    "  [sweep]\n"
    "  lr = [1e-4, 3e-4]                                 all combinations are run\n"
    "  dropout = { min = 0.0, max = 0.3, draws = 4 }     drawn at random by a seed\n"
    "  weight-decay = { min = 1e-3, max = 1e-1, log = true, draws = 4, seed = 7 }\n"
    "  seed = [1, 2, 3]\n"
    "Ranges without draws are drawn together, as often as draws in [sweep] says; draw-seed there\n"
    "seeds them.";

struct SweepCommand {
  std::string grid, output;
  SweepSettings settings;
  bool dry_run = false, json = false, quiet = false;
};

const OptionRow<SweepCommand> kSweepRows[] = {
    {{.name = "grid",
      .required = commands::all,
      .is_argument = true,
      .help = "TOML file: train's options, and [sweep] with those to vary",
      .value = "GRID"},
     &SweepCommand::grid},
    {{.name = "output",
      .common = commands::all,
      .help = "directory of the sweep; each run has its own in it, NAME=VALUE,... (default: output "
              "in GRID)",
      .value = "DIR"},
     &SweepCommand::output},
};
const OptionRow<SweepSettings> kSettingsRows[] = {
    {{.name = "jobs",
      .common = commands::all,
      .help = "runs at a time, each with its part of the cores",
      .range = between(1, 1024)},
     &SweepSettings::jobs},
    {{.name = "halving",
      .common = commands::all,
      .help = "successive halving: along the way only the best one in N settings goes on (default: "
              "all do)",
      .range = between(2, 1024)},
     &SweepSettings::halving},
};
const OptionRow<SweepCommand> kSweepFlags[] = {
    {{.name = "dry-run",
      .common = commands::all,
      .help = "the list of runs, with time and disk; runs nothing"},
     &SweepCommand::dry_run},
    {{.name = "json",
      .common = commands::all,
      .help = "one JSON object a run, one line each, then the summary"},
     &SweepCommand::json},
    {{.name = "quiet",
      .common = commands::all,
      .help = "no line for each run on standard error, only warnings"},
     &SweepCommand::quiet},
};

// Prints a line for people during the sweep.
void say(const SweepCommand& o, const std::string& line) {
  if (o.quiet) return;
  std::fputs(prose_for(STDERR_FILENO, printable_message(line) + "\n").c_str(), stderr);
}

std::string outcome_of(const RunReport& report) {
  std::string text;
  const std::string metric = report.best_metric.empty() ? "train_loss" : report.best_metric;
  if (const auto found = report.metrics.find(metric); found != report.metrics.end()) {
    text = concat(metric, " ", format_fixed(found->second, 4));
  }
  if (report.status == RunStatus::dropped) text += ", dropped by --halving";
  if (report.code == ExitCode::done) return text;
  return concat(text, text.empty() ? "" : ", ", "exit ", int(report.code),
                report.error.empty() ? "" : ": ", report.error);
}

// The result of the best run, and simpler models beside it.
std::string words_of_best(const Grid& grid, const SweepResult& result) {
  const Metrics& metrics = result.reports[*result.best].metrics;
  const std::vector<std::string> lines = result_lines(metrics);
  if (lines.empty()) return "";
  const std::string others = baseline_line(metrics);
  return concat("best of ", counted(result.finished.size(), "run"), ", ",
                printable_path(grid.runs[*result.best].name), ": ", lines[0], "\n", others,
                others.empty() ? "" : "\n");
}

std::string text_of(const Grid& grid, const SweepResult& result) {
  std::string text = result.best ? words_of_best(grid, result) : "";
  if (result.comparison) {
    text += comparison_text(*result.comparison, result.finished, false,
                            size_t(known_columns(STDOUT_FILENO)));
  }
  if (result.best) {
    const std::string model = best_model(grid, *result.best);
    const bool is_there = directory_exists(model, ExitCode::model);
    text +=
        concat("best model: ", printable_path(model), is_there ? "" : " is gone", "\n",
               "next:  finetune report ", shell_word(grid.fixed.output), " --output report.html\n");
  }
  std::string rest;
  for (size_t r = 0; r < result.reports.size(); ++r) {
    const RunReport& report = result.reports[r];
    if (report.status == RunStatus::finished && report.code == ExitCode::done) continue;
    rest += printable_message(
                concat(grid.runs[r].name, "  ", name_of(report.status), "  ", outcome_of(report))) +
            "\n";
  }
  return concat(text, text.empty() || rest.empty() ? "" : "\n", rest);
}

// If runs have failed, throws an error with their number and the first one's message.
// Collective.
void report_failures(const Grid& grid, const SweepResult& result) {
  agree_on_errors(world(), [&] {
    if (world().rank() > 0) return;
    const auto failed = [](const RunReport& r) { return r.status == RunStatus::failed; };
    const auto& reports = result.reports;
    const auto first = std::find_if(reports.begin(), reports.end(), failed);
    if (first == reports.end()) return;
    throw Error(result.code,
                concat(std::count_if(reports.begin(), reports.end(), failed), " of ",
                       counted(reports.size(), "run"), " failed, the first one is ",
                       grid.runs[size_t(first - reports.begin())].name, ": ", first->error));
  });
}

void show_result(const SweepCommand& o, const Grid& grid, const SweepResult& result) {
  if (!result.others.empty()) {
    say(o, concat("not of this grid, and left as they are: ", join_some(result.others, 10)));
  }
  o.json ? write_standard_output(sweep_line(grid, result.reports, summary_of(result)))
         : write_lines(text_of(grid, result));
  flush_standard_output();
}

void forecast(const SweepCommand& o, const Grid& grid) {
  if (world().rank() > 0) return;  // one process is forecast
  const SweepPlan plan = plan_sweep(grid, o.settings);
  write_standard_output(o.json ? sweep_plan_json(grid, plan)
                               : sweep_plan_text(grid, o.settings, plan));
}

void sweep(const SweepCommand& o, int& exit_code) {
  const Grid grid = expand_grid(read_grid(o.grid), o.output);
  require_directory_name("--output", grid.fixed.output);
  if (o.dry_run) return forecast(o, grid);
  size_t count = 0;
  SweepProgressLine line(grid, o.settings,
                         !o.quiet && !grid.fixed.quiet && !grid.fixed.no_progress);
  auto ended = [&](size_t run, const RunReport& report) {
    line.count_ended(report);
    line.erase();
    if (o.json) {
      write_standard_output(report.result_line.empty() ? failure_line(grid.runs[run], report)
                                                       : report.result_line);
      flush_standard_output();
    }
    say(o,
        concat(
            ++count, "/", grid.runs.size(), "  ", grid.runs[run].name, "  ", outcome_of(report),
            report.kept ? ", there already" : concat(", ", format_fixed(report.seconds, 1), " s")));
  };
  auto told = [&](const std::string& text) {
    line.erase();
    say(o, text);
  };
  std::set<std::string> warnings;  // each is shown only for the first run that has it
  auto warned = [&](size_t run, const std::string& text) {
    open_console(true);
    if (warnings.insert(text).second) warn(grid.runs[run].name, ": ", text);
  };
  auto progressed = [&](const std::vector<RunAtWork>& runs) { line.show(runs); };
  const SweepResult result =
      run_sweep(grid, o.settings, world(), {ended, told, warned, progressed});
  exit_code = int(result.code);
  if (world().rank() == 0) show_result(o, grid, result);
  report_failures(grid, result);
}

}  // namespace

void add_sweep_command(Subcommand program, int& exit_code) {
  const Subcommand command =
      program.add_subcommand("sweep", "Run train over a grid of options, and compare the results");
  auto o = std::make_shared<SweepCommand>();
  add_options(command, kSweepRows, *o);
  add_options(command, kSettingsRows, o->settings);
  add_options(command, kSweepFlags, *o);
  command.footer(kSweepExamples);
  command.callback([o, &exit_code] { sweep(*o, exit_code); });
}

}  // namespace finetune
