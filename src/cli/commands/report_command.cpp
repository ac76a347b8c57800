// finetune report: writes the results of finished runs to one HTML file.
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "cli/command.h"
#include "cli/options/option_binding.h"
#include "cli/output/child_command.h"
#include "cli/standard_output.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/files/path_advice.h"
#include "core/log.h"
#include "core/text/json_value.h"
#include "core/text/printable.h"
#include "core/text/text.h"
#include "experiments/compare/find_runs.h"
#include "experiments/report/report.h"

namespace finetune {
namespace {

constexpr const char* kReportExamples =
    "Examples:\n"
    "  finetune report runs/a\n"
    "  finetune report runs --output sweep.html       all runs in a directory\n"
    "  finetune report runs/a --explain               the words that made its errors\n"
    "\n"
    "The file needs no network and runs no script. Of a run it shows the result beside simpler\n"
    "answers, how much can be automatic, calibration, confused labels, the worst errors with "
    "their\n"
    "texts, curves, options and facts; of several runs the settings compared, then the best run.";

struct ReportOptions {
  std::vector<std::string> directories;
  std::string output = "report.html";
  bool overwrite = false, explain = false;
  std::string label_errors;
};

const OptionRow<ReportOptions> kReportRows[] = {
    {{.name = "runs",
      .required = commands::all,
      .is_argument = true,
      .help = "runs, or directories with runs at any depth",
      .value = "DIR..."},
     &ReportOptions::directories},
    {{.name = "output", .help = "the HTML file; - is standard output", .value = "FILE|-"},
     &ReportOptions::output},
    {{.name = "overwrite", .help = "replace an earlier report"}, &ReportOptions::overwrite},
    {{.name = "explain", .help = "the worst errors of the best run with the words that made them"},
     &ReportOptions::explain},
    {{.name = "label-errors",
      .help = "rows whose label may be wrong, as check --label-errors has written them",
      .value = "FILE"},
     &ReportOptions::label_errors},
};

// Checks --output before anything slow. A report may replace only another report.
void check_report_output(const ReportOptions& o) {
  if (o.output == "-") return;
  const fs::path path = o.output;
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(path, error))) {
    throw usage_error("--output ", o.output, ": is a symbolic link; name a file");
  }
  const FileKind kind = kind_of(path, ExitCode::model);
  if (kind == FileKind::absent) return;
  if (kind == FileKind::directory) {
    throw usage_error("--output ", o.output, ": is a directory, a file is needed");
  }
  if (!is_report(path)) {
    throw usage_error("--output ", o.output,
                      ": exists and is not a report of finetune; choose another file");
  }
  if (!o.overwrite) throw usage_error("--output ", o.output, ": exists; --overwrite replaces it");
}

// Returns, for each row, words such as "TIRE +3.21; STORE +0.40" from the run's model.
std::vector<std::string> explain_rows(const RunRecord& run, const std::vector<std::string>& columns,
                                      const std::vector<std::vector<std::string>>& rows) {
  std::string input;
  for (const std::vector<std::string>& row : rows) {
    JsonObject line;
    for (size_t i = 0; i < columns.size(); ++i) line.set(columns[i], row[i]);
    input += line.text() + "\n";
  }
  const std::string output = output_of_command(
      {"predict", "--model", run.directory.string(), "--input", "-", "--input-format", "jsonl",
       "--output", "-", "--json-lines", "--explain", "--quiet"},
      input);
  std::vector<std::string> out;
  for (const std::string_view line : split(output, '\n')) {
    if (line.empty()) continue;
    std::string words;
    const JsonValue explained = JsonValue::parse(line);
    for (const JsonValue& part : explained["words"].items()) {
      const double weight = part["weight"].as<double>().value();
      words += concat(words.empty() ? "" : "; ", part["word"].as<std::string>().value(),
                      weight < 0 ? " " : " +", format_fixed(weight, 2));
    }
    out.push_back(std::move(words));
  }
  if (out.size() != rows.size()) {
    throw data_error("predict gave ", out.size(), " rows for ", rows.size());
  }
  return out;
}

void report(const ReportOptions& o) {
  require_output_suffix("--output", o.output, {".html", ".htm"},
                        "one HTML page is written; name it .html");
  const std::vector<fs::path> found = find_runs(o.directories);
  check_report_output(o);
  const std::vector<RunRecord> runs = read_runs(found);
  const std::string page =
      report_html(runs, {o.explain ? explain_rows : ExplainRows(), o.label_errors});
  open_console(false);
  if (o.output == "-") return write_standard_output(page);
  remove_abandoned_files(o.output);
  write_file(o.output, page,
             o.overwrite ? AtomicFile::Existing::replace : AtomicFile::Existing::refuse);
  write_lines(concat(printable(o.output), ": ", runs.size(),
                     runs.size() == 1 ? " run, " : " runs, ", (page.size() + 1023) / 1024,
                     " KiB\n"));
}

}  // namespace

void add_report_command(Subcommand program, int&) {
  const Subcommand command = program.add_subcommand(
      "report", "Show finished runs in one HTML file: curves, errors, facts");
  auto o = std::make_shared<ReportOptions>();
  add_options(command, kReportRows, *o);
  command.footer(kReportExamples);
  command.callback([o] { report(*o); });
}

}  // namespace finetune
