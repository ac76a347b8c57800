// Puts a report's page together.
#include "experiments/report/report.h"

#include <string_view>

#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/files/text_file.h"
#include "core/text/text.h"
#include "experiments/report/page/html.h"
#include "experiments/report/page/page_style.h"
#include "experiments/report/sections.h"
#include "tasks/labels/explanation.h"
#include "tasks/registry.h"

namespace finetune {
namespace {

// The first bytes of a report, by which is_report() recognises it.
constexpr std::string_view kPageBegin =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"generator\" content=\"finetune ";

// With this policy a browser runs no script and sends no request, whatever the texts contain.
constexpr std::string_view kPolicy =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n";

// Returns "best" and the metric for the best run of several, to show beside its name.
std::string best_mark(const RunSettings& settings, size_t run) {
  if (!settings.comparison || run != settings.best) return "";
  return concat(" <strong>best ", markup_escaped(settings.comparison->deciding(), 100),
                "</strong>");
}

std::string run_html(const RunRecord& run, const std::string& name, size_t number,
                     const RunSettings& settings, const ExplainRows& explain) {
  const bool is_open = number == settings.best, is_alone = settings.of_run.size() == 1;
  const bool is_at_top = is_alone || (is_open && settings.comparison);
  return concat("<section id=\"run-", number + 1, "\">\n<details class=\"run\"",
                is_open ? " open" : "", "><summary><h2><bdi>", markup_escaped(name, 300), "</bdi>",
                best_mark(settings, number), "</h2></summary>\n",
                is_at_top ? "" : result_html(run, true),
                evaluation_html(run, is_open ? explain : nullptr), facts_html(run),
                "</details>\n</section>\n");
}

std::string runs_nav(const std::vector<std::string>& names, const RunSettings& settings) {
  std::string out = "<nav aria-label=\"Runs\"><ul>\n";
  for (size_t r = 0; r < names.size(); ++r) {
    out += concat("<li><a href=\"#run-", r + 1, "\"><bdi>", markup_escaped(names[r], 300),
                  "</bdi></a>", best_mark(settings, r), "</li>\n");
  }
  return out + "</ul></nav>\n";
}

// Error(usage), in the words of predict, for a run whose errors no words explain.
void require_explainable(const RunRecord& run) {
  const auto task = task_named(run.option("task"));
  if (task && *task != TaskKind::classification) {
    throw usage_error("--explain is for classification; ", printable_path(run.directory),
                      " was trained for ", traits_of(*task).title);
  }
  constexpr size_t kSeveral = 2;  // a model of one label explains nothing, but its run has no error
  check_explanation(run.option("regression") == "true"   ? ProblemType::regression
                    : !run.option("multi-label").empty() ? ProblemType::multi_label
                                                         : ProblemType::single_label,
                    kSeveral);
}

}  // namespace

std::string report_html(const std::vector<RunRecord>& runs, const ReportExtras& extras) {
  const std::vector<std::string> names = run_names(runs);
  const RunSettings settings = settings_of(runs);
  if (extras.explain) require_explainable(runs[settings.best]);
  const bool is_one = runs.size() == 1;
  const std::string title = is_one ? names[0] : concat(runs.size(), " runs");
  std::string out =
      concat(kPageBegin, FINETUNE_VERSION, "\">\n", kPolicy,
             "<title>finetune report: ", markup_escaped(title, 300), "</title>\n<style>\n",
             kPageStyle, "</style>\n</head>\n<body>\n<main>\n");
  out += is_one ? headline_html(runs[0]) : settings_html(runs, settings);
  if (!is_one) {
    out += concat(curves_html(runs, settings), overview_html(runs), runs_nav(names, settings));
  }
  out +=
      run_html(runs[settings.best], names[settings.best], settings.best, settings, extras.explain);
  for (size_t r = 0; r < runs.size(); ++r) {
    if (r != settings.best) out += run_html(runs[r], names[r], r, settings, nullptr);
  }
  if (is_one) out += curves_html(runs, settings);
  if (!extras.label_errors.empty()) out += label_errors_html(extras.label_errors, runs);
  return out + "</main>\n</body>\n</html>\n";
}

bool is_report(const std::filesystem::path& path) {
  return read_beginning(path, kPageBegin.size()) == kPageBegin;
}

}  // namespace finetune
