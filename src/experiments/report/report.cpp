// Puts a report's page together.
#include "experiments/report/report.h"

#include <string_view>

#include "core/error.h"
#include "core/files/text_file.h"
#include "core/text/text.h"
#include "experiments/compare/comparison.h"
#include "experiments/report/html.h"
#include "experiments/report/sections.h"
#include "tasks/baseline.h"
#include "tasks/repeated_texts.h"
#include "train/run/metrics_files.h"

namespace finetune {
namespace {

// The style sheet of a report's page: light and dark, wide and narrow.
inline constexpr std::string_view kPageStyle = R"(:root {
  color-scheme: light dark;
  --page: #fff; --text: #1a1d21; --soft: #55595f; --grid: #e1e4e8; --axis: #71767d; --link: #0b57a4;
  --right: #2f74b5; --wrong: #d1641c; --other: #8a8f98; --stripe: #f4f6f8;
  --c0: #1f6fb4; --c1: #c14a00; --c2: #2a7d3f; --c3: #a3347f; --c4: #6b4fbb; --c5: #846000; --c6: #00717d; --c7: #555;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171a; --text: #e8eaed; --soft: #b3b8bf; --grid: #30353b; --axis: #8b9199; --link: #84bdf7;
    --right: #3f83c4; --wrong: #cf6a28; --other: #8d939c; --stripe: #1c2024;
    --c0: #6db3f2; --c1: #ff9e57; --c2: #6fcf86; --c3: #f08ccf; --c4: #b7a1ff; --c5: #e0b84c; --c6: #4fd0dd; --c7: #c4c7cc;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.45 system-ui, sans-serif; }
main { max-width: 1280px; margin: 0 auto; padding: 8px 16px 48px; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 1.6em 0 .6em; overflow-wrap: anywhere; }
h3 { font-size: 1.02rem; margin: 1.8em 0 .6em; }
a { color: var(--link); }
nav ul, .legend { display: flex; flex-wrap: wrap; gap: 4px 18px; padding: 0; margin: 8px 0; list-style: none; }
nav li, .legend li { overflow-wrap: anywhere; min-width: 0; }
.key { width: 28px; height: 8px; margin-right: 6px; vertical-align: middle; }
details.run { border-top: 1px solid var(--grid); }
details.run > summary { cursor: pointer; }
details.run > summary h2 { display: inline-block; margin: .7em 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(340px, 100%), 1fr)); gap: 22px 24px; align-items: start; }
figure { margin: 0; min-width: 0; }
figure.wide { grid-column: 1 / -1; }
figcaption { font-weight: 600; margin-bottom: 4px; }
figure > svg { display: block; width: 100%; height: auto; max-width: 480px; }
svg text { font: 11px system-ui, sans-serif; fill: var(--text); }
svg .name { fill: var(--soft); }
.grid { stroke: var(--grid); stroke-width: 1; }
.axis { stroke: var(--axis); stroke-width: 1; }
.diagonal { stroke: var(--axis); stroke-width: 1.2; stroke-dasharray: 5 4; }
.right { fill: var(--right); } .wrong { fill: var(--wrong); } .other { fill: var(--other); }
.line { fill: none; stroke-width: 1.7; stroke-linejoin: round; }
.line.c0 { stroke: var(--c0); } .line.c1 { stroke: var(--c1); } .line.c2 { stroke: var(--c2); } .line.c3 { stroke: var(--c3); }
.line.c4 { stroke: var(--c4); } .line.c5 { stroke: var(--c5); } .line.c6 { stroke: var(--c6); } .line.c7 { stroke: var(--c7); }
.dot.c0 { fill: var(--c0); } .dot.c1 { fill: var(--c1); } .dot.c2 { fill: var(--c2); } .dot.c3 { fill: var(--c3); }
.dot.c4 { fill: var(--c4); } .dot.c5 { fill: var(--c5); } .dot.c6 { fill: var(--c6); } .dot.c7 { fill: var(--c7); }
.d1 { stroke-dasharray: 7 3; } .d2 { stroke-dasharray: 2 3; } .d3 { stroke-dasharray: 8 3 2 3; }
.note { color: var(--soft); font-size: .87rem; margin: 4px 0; overflow-wrap: anywhere; }
figure details { margin-top: 4px; font-size: .87rem; }
figure summary { cursor: pointer; color: var(--link); }
.scroll { overflow: auto; max-width: 100%; }
figure details .scroll { max-height: 22em; }
.tables { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(340px, 100%), 1fr)); gap: 20px 24px; align-items: start; }
.tables td:first-child { white-space: nowrap; }
table { border-collapse: collapse; font-size: .87rem; }
caption { text-align: start; font-weight: 600; padding-bottom: 4px; }
th, td { padding: 3px 10px 3px 0; text-align: start; vertical-align: top; border-bottom: 1px solid var(--grid); }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
td { overflow-wrap: anywhere; min-width: 3em; max-width: 34em; }
.scroll td { overflow-wrap: break-word; }
td.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
tbody tr:nth-child(even) { background: var(--stripe); }
@media print { details.run > summary { list-style: none; } }
)";

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
