// Puts a report's page together.
#include "train/report/report.h"

#include "core/files/text_file.h"
#include "core/text/text.h"
#include "tasks/baseline.h"
#include "train/report/html.h"
#include "train/report/page_style.h"
#include "train/report/sections.h"

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
  const std::string line = baseline_line(run.metrics);
  return line.empty() ? "" : concat("<p>Baselines: ", markup_escaped(line, 300), "</p>\n");
}

std::string run_html(const RunRecord& run, const std::string& name, size_t number, bool open) {
  return concat("<section id=\"run-", number, "\">\n<details class=\"run\"", open ? " open" : "",
                "><summary><h2><bdi>", markup_escaped(name, 300), "</bdi></h2></summary>\n",
                facts_html(run), "<h3>Evaluation</h3>\n", baselines_html(run), evaluation_html(run),
                "</details>\n</section>\n");
}

}  // namespace

std::string report_html(const std::vector<RunRecord>& runs) {
  const std::vector<std::string> names = run_names(runs);
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
                    "</bdi></a></li>\n");
    }
    out += "</ul></nav>\n";
  }
  out += concat("<section>\n<h2>Runs</h2>\n", overview_html(runs), "</section>\n<section>\n",
                "<h2>Curves</h2>\n", curves_html(runs), "</section>\n");
  for (size_t r = 0; r < runs.size(); ++r) out += run_html(runs[r], names[r], r + 1, r == 0);
  return out + "</main>\n</body>\n</html>\n";
}

bool is_report(const std::filesystem::path& path) {
  return read_beginning(path, kPageBegin.size()) == kPageBegin;
}

}  // namespace finetune
