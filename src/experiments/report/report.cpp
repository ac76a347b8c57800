// Puts a report's page together.
#include "experiments/report/report.h"

#include "core/error.h"
#include "core/files/text_file.h"
#include "core/text/text.h"
#include "experiments/compare/comparison.h"
#include "experiments/report/html.h"
#include "experiments/report/page_style.h"
#include "experiments/report/sections.h"
#include "tasks/baseline.h"
#include "tasks/repeated_texts.h"
#include "train/run/metrics_files.h"

namespace finetune {
namespace {

// What a report is known by.
constexpr std::string_view kPageBegin =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"generator\" content=\"finetune ";

// A browser that keeps to it runs nothing and asks nobody, whatever the texts hold.
constexpr std::string_view kPolicy =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n";

std::string baselines_html(const RunRecord& run) {
  const std::string line = baseline_line(run.metrics), unseen = unseen_line(run.metrics);
  return concat(
      line.empty() ? "" : concat("<p>Baselines: ", markup_escaped(line, 300), "</p>\n"),
      unseen.empty() ? "" : concat("<p>Repeated texts: ", markup_escaped(unseen, 300), "</p>\n"));
}

// "Trained 2026-11-27T08:55:00Z on 4000 rows, evaluated on 1000; data sha256 0123456789ab".
std::string date_html(const RunRecord& run) {
  const std::string ended = fact_named(run.facts, "ended");
  if (ended.empty()) return "";  // a run of an older version
  const std::string eval = fact_named(run.facts, "eval_rows");
  const std::string text =
      concat("Trained ", ended, " on ", fact_named(run.facts, "train_rows"), " rows",
             eval.empty() || eval == "0" ? "" : concat(", evaluated on ", eval), "; data sha256 ",
             fact_named(run.facts, "data_sha256").substr(0, 12));
  return concat("<p>", markup_escaped(text, 300), "</p>\n");
}

// The run whose part of the page is open.
struct BestRun {
  size_t place = 0;
  std::string metric;  // that it is best by; empty: the runs cannot be compared, or there is one
};

BestRun best_of(const std::vector<RunRecord>& runs) try {
  BestRun best;
  if (runs.size() < 2) return best;
  const RunComparison comparison = compare_runs(runs, {}, {});
  best.metric = comparison.deciding();
  best.place = best_run(comparison, runs);
  return best;
} catch (const Error&) {  // of several tasks
  return {};
}

std::string best_mark(const BestRun& best, size_t place) {
  if (best.metric.empty() || place != best.place) return "";
  return concat(" <strong>best ", markup_escaped(best.metric, 100), "</strong>");
}

std::string run_html(const RunRecord& run, const std::string& name, size_t number,
                     const std::string& mark, bool open) {
  return concat("<section id=\"run-", number, "\">\n<details class=\"run\"", open ? " open" : "",
                "><summary><h2><bdi>", markup_escaped(name, 300), "</bdi>", mark,
                "</h2></summary>\n", date_html(run), facts_html(run), "<h3>Evaluation</h3>\n",
                baselines_html(run), evaluation_html(run), "</details>\n</section>\n");
}

}  // namespace

std::string report_html(const std::vector<RunRecord>& runs) {
  const std::vector<std::string> names = run_names(runs);
  const BestRun best = best_of(runs);
  const std::string title = runs.size() == 1 ? names[0] : concat(runs.size(), " runs");
  std::string out =
      concat(kPageBegin, FINETUNE_VERSION, "\">\n", kPolicy,
             "<title>finetune report: ", markup_escaped(title, 300), "</title>\n<style>\n",
             kPageStyle, "</style>\n</head>\n<body>\n<main>\n<h1>finetune report: <bdi>",
             markup_escaped(title, 300), "</bdi></h1>\n");
  if (runs.size() > 1) {
    out += "<nav aria-label=\"Runs\"><ul>\n";
    for (size_t r = 0; r < runs.size(); ++r) {
      out += concat("<li><a href=\"#run-", r + 1, "\"><bdi>", markup_escaped(names[r], 300),
                    "</bdi></a>", best_mark(best, r), "</li>\n");
    }
    out += "</ul></nav>\n";
  }
  out += concat("<section>\n<h2>Runs</h2>\n", overview_html(runs), "</section>\n<section>\n",
                "<h2>Curves</h2>\n", curves_html(runs), "</section>\n");
  for (size_t r = 0; r < runs.size(); ++r) {
    out += run_html(runs[r], names[r], r + 1, best_mark(best, r), r == best.place);
  }
  return out + "</main>\n</body>\n</html>\n";
}

bool is_report(const std::filesystem::path& path) {
  return read_beginning(path, kPageBegin.size()) == kPageBegin;
}

}  // namespace finetune
