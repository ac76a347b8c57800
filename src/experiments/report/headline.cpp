// The head of a report on one run: the result in words, its alternatives, date, model and data.
#include <algorithm>
#include <cmath>

#include "core/files/file_kind.h"
#include "core/log.h"
#include "core/text/shown_numbers.h"
#include "core/text/text.h"
#include "experiments/report/page/html.h"
#include "experiments/report/sections.h"
#include "tasks/baseline.h"
#include "tasks/scores/main_measure.h"
#include "tasks/scores/promise_file.h"
#include "tasks/scores/result_lines.h"
#include "train/run/metrics_files.h"
#include "weights/hub_cache.h"

namespace finetune {
namespace {

struct Alternative {
  std::string prefix, name;
};

std::vector<Alternative> alternatives(const std::string& measure, bool has_columns) {
  const char* simplest = measure == "eval_mse"        ? "mean"
                         : measure == "eval_f1_micro" ? "labels of most rows"
                                                      : "commonest label";
  return {{"eval_", "this model"},
          {"baseline_unmixed_", "BERT alone, without n-grams"},
          {"baseline_frozen_", "BERT's frozen features alone"},
          {"baseline_ngram_", has_columns ? "words and columns" : "words"},
          {"baseline_majority_", simplest}};
}

// Draws bars of the main measure for the model and simpler alternatives; empty without these.
std::string alternatives_html(const RunRecord& run) {
  const std::string measure = main_measure(run.metrics);
  if (measure.empty()) return "";
  const bool is_error = measure == "eval_mse";
  const std::string title = is_error ? "Typical error (RMSE)" : metric_title(measure);
  const std::string name = measure.substr(measure.find('_') + 1);
  std::vector<std::pair<std::string, double>> found;
  double most = 0;
  for (const Alternative& each :
       alternatives(measure, run.metrics.contains("baseline_ngram_columns"))) {
    auto value = run.metrics.find(each.prefix + name);
    const auto tuned = run.metrics.find(measure + "_tuned");
    if (each.prefix == "eval_" && tuned != run.metrics.end()) value = tuned;
    if (value == run.metrics.end()) continue;
    // With --recipe quick both are the same model, so its figure is shown once.
    const auto frozen = run.metrics.find("baseline_frozen_" + name);
    const bool is_frozen = frozen != run.metrics.end() && frozen->second == value->second;
    if (each.prefix == "baseline_unmixed_" && is_frozen) continue;
    found.emplace_back(each.name, is_error ? std::sqrt(value->second) : value->second);
    most = std::max(most, found.back().second);
  }
  if (found.size() < 2) return "";
  HtmlTable table(concat(title, " beside simpler answers", is_error ? ", smaller is better" : ""),
                  {"answers of", title});
  for (size_t i = 0; i < found.size(); ++i) {
    table.name(found[i].first).bar(found[i].second, most, i == 0 ? "right" : "other").end_row();
  }
  return concat("<div>\n", table.html(), "</div>\n");
}

std::string model_name(const RunRecord& run) {
  const std::string& model = run.option("model");
  if (const auto origin = hub_origin(model)) return origin->id;
  return (std::filesystem::path(model) / "").lexically_normal().parent_path().filename().string();
}

std::string file_names(const std::vector<std::filesystem::path>& files) {
  std::vector<std::string> names;
  for (const auto& file : files) names.push_back(file.filename().string());
  return join_some(names, 4);
}

std::string took(const RunRecord& run) {
  const auto found = run.metrics.find("train_runtime");
  if (found == run.metrics.end()) return "";
  if (found->second < 60) return concat("; ", three_digits(found->second), " s");
  const auto seconds = int64_t(std::llround(found->second));
  return seconds < 3600 ? concat("; ", seconds / 60, " min ", seconds % 60, " s")
                        : concat("; ", seconds / 3600, " h ", seconds / 60 % 60, " min");
}

std::string model_html(const RunRecord& run) {
  const std::string eval = run.eval_files.empty() ? "" : file_names(run.eval_files);
  const std::string held_out =
      eval.empty() ? "" : concat(", evaluated on <bdi>", markup_escaped(eval, 300), "</bdi>");
  return concat("<p>Model <bdi>", markup_escaped(model_name(run), 300), "</bdi>, trained on <bdi>",
                markup_escaped(file_names(run.train_files), 300), "</bdi>", held_out, took(run),
                ".</p>\n");
}

std::string count_of(const std::string& fact) {
  const auto rows = parse_int(fact);
  return rows ? with_thousands(double(*rows)) : fact;
}

// "Trained 2026-11-27 08:55 UTC on 4,000 rows, evaluated on 1,000; data sha256 0123456789ab".
std::string date_html(const RunRecord& run) {
  const std::string ended = fact_named(run.facts, "ended");
  if (ended.empty()) return "";  // a run of an older version
  const std::string eval = fact_named(run.facts, "eval_rows");
  const std::string text = concat(
      "Trained ", date_in_words(ended), " on ", count_of(fact_named(run.facts, "train_rows")),
      " rows", eval.empty() || eval == "0" ? "" : concat(", evaluated on ", count_of(eval)),
      "; data sha256 ", fact_named(run.facts, "data_sha256").substr(0, 12));
  return concat("<p class=\"note\">", markup_escaped(text, 300), "</p>\n");
}

std::string promise_html(const RunRecord& run) {
  try {
    const auto promise = stored_promise(run.directory / "model");
    if (!promise) return "";
    return concat("<p>Promise: ", markup_escaped(promise_in_words(*promise)),
                  "; finetune predict --automatic uses it.</p>\n");
  } catch (const Error& error) {
    warn("the promise of ", printable_path(run.directory), " is not shown: ", error.what());
    return concat("<p class=\"note\">The promise is not shown: ",
                  markup_escaped(error.what(), 1000), ".</p>\n");
  }
}

}  // namespace

std::string verdict_of(const RunRecord& run) {
  const std::vector<std::string> lines = result_lines(run.metrics);
  return lines.empty() ? "a run without evaluation" : lines.front();
}

std::string result_html(const RunRecord& run, bool with_verdict) {
  std::string text = "<div class=\"head\">\n<div>\n";
  const std::vector<std::string> lines = result_lines(run.metrics);
  const std::string bars = alternatives_html(run), in_bars = baseline_line(run.metrics);
  const auto add = [&](const std::string& line) {
    text += concat("<p class=\"lead\">", markup_escaped(line, 300), "</p>\n");
  };
  if (with_verdict && !lines.empty()) add(lines.front());
  if (const std::string verdict = baseline_verdict(run.metrics); !verdict.empty()) {
    text += concat("<p class=\"lead\"><strong>", markup_escaped(verdict), "</strong></p>\n");
  }
  for (size_t i = 1; i < lines.size(); ++i) {
    if (bars.empty() || lines[i] != in_bars) add(lines[i]);
  }
  return concat(text, promise_html(run), model_html(run), date_html(run), "</div>\n", bars,
                "</div>\n");
}

std::string headline_html(const RunRecord& run) {
  std::string verdict = verdict_of(run);
  if ('a' <= verdict[0] && verdict[0] <= 'z') verdict[0] = char(verdict[0] - 'a' + 'A');
  return concat("<h1>", markup_escaped(verdict, 300), "</h1>\n", result_html(run, false));
}

}  // namespace finetune
