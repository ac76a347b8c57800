// finetune compare: compares finished runs, and tells if they differ by more than noise.
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/options/option_binding.h"
#include "cli/standard_output.h"
#include "core/error.h"
#include "core/log.h"
#include "core/terminal_line.h"
#include "experiments/compare/comparison.h"
#include "experiments/compare/comparison_output.h"
#include "experiments/compare/find_runs.h"
#include "experiments/compare/noise.h"

namespace finetune {
namespace {

constexpr const char* kCompareExamples =
    "Examples:\n"
    "  finetune compare runs/a runs/b\n"
    "  finetune compare runs/* --by lr --metric eval_f1_macro\n"
    "  finetune compare runs --markdown >> report.md    all runs in a directory\n"
    "\n"
    "Runs that differ only in their seed are one row: mean ± standard deviation. Whether a\n"
    "difference to the best row is more than noise is judged by a paired bootstrap over the saved\n"
    "predictions and by the spread over seeds, as far as each is known.";

struct CompareOptions {
  std::vector<std::string> directories, by, metrics;
  bool csv = false, markdown = false, json = false;
};

const OptionRow<CompareOptions> kCompareRows[] = {
    {{.name = "runs",
      .required = commands::all,
      .is_argument = true,
      .help = "runs, or directories with runs at any depth",
      .value = "DIR..."},
     &CompareOptions::directories},
    {{.name = "by",
      .help = "options whose values make the rows (default: all that differ, except the seed)",
      .value = "OPTION[,OPTION...]",
      .separator = ','},
     &CompareOptions::by},
    {{.name = "metric",
      .help = "metrics to show; the first decides (default: the runs' best-metric)",
      .value = "METRIC[,METRIC...]",
      .separator = ','},
     &CompareOptions::metrics},
    {{.name = "csv", .help = "print the table as CSV"}, &CompareOptions::csv},
    {{.name = "markdown", .help = "print the table as Markdown"}, &CompareOptions::markdown},
    {{.name = "json", .help = "print one JSON object on one line"}, &CompareOptions::json},
};

void compare(const CompareOptions& o) {
  if (o.csv + o.markdown + o.json > 1) {
    throw usage_error("--csv, --markdown and --json exclude each other");
  }
  const std::vector<RunRecord> runs = read_runs(find_runs(o.directories));
  RunComparison comparison = compare_runs(runs, o.by, o.metrics);
  add_differences(runs, comparison);
  open_console(false);
  if (o.json || o.csv) {
    return write_standard_output(o.json ? comparison_json(comparison, runs)
                                        : comparison_csv(comparison, runs));
  }
  const bool chooses = o.metrics.empty();  // what was asked for is shown at any width
  const std::string text = comparison_text(comparison, runs, o.markdown,
                                           chooses ? size_t(known_columns(STDOUT_FILENO)) : 0);
  o.markdown ? write_standard_output(text) : write_lines(text);
}

}  // namespace

void add_compare_command(Subcommand program, int&) {
  const Subcommand command = program.add_subcommand(
      "compare", "Compare finished runs: mean, spread, and what is more than noise");
  auto o = std::make_shared<CompareOptions>();
  add_options(command, kCompareRows, *o);
  command.footer(kCompareExamples);
  command.callback([o] { compare(*o); });
}

}  // namespace finetune
