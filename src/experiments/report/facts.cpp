// Tables of runs' options, metrics and facts, and the choice of a task's section.
#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/log.h"
#include "core/text/text.h"
#include "experiments/compare/comparison.h"
#include "experiments/report/page/html.h"
#include "experiments/report/sections.h"
#include "tasks/scores/metric_table.h"
#include "train/run/metrics_files.h"

namespace finetune {
namespace {

constexpr size_t kMostValueBytes = 300;
constexpr size_t kShownSum = 12;  // digits of a sha256 in the overview

// Returns the runs' best metrics, then the usual metrics, then loss, time and memory.
std::vector<std::string> overview_metrics(const std::vector<RunRecord>& runs) {
  std::vector<std::string> names;
  auto add = [&](const std::string& name) {
    const bool known = std::any_of(
        runs.begin(), runs.end(), [&](const RunRecord& run) { return run.metrics.contains(name); });
    if (known && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const RunRecord& run : runs) add(run.option("best-metric"));
  for (const MetricInfo& metric : kMetricTable) {
    if (metric.is(kUsual)) add(std::string(metric.name));
  }
  for (const char* name : {"train_loss", "train_runtime", "peak_memory_mb"}) add(name);
  return names;
}

}  // namespace

std::vector<std::string> run_names(const std::vector<RunRecord>& runs) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const RunRecord& run : runs) {
    const std::string path = run.directory.lexically_normal().string();
    std::string name = std::filesystem::path(path).filename().string();
    if (name.empty()) name = std::filesystem::path(path).parent_path().filename().string();
    names.push_back(name.empty() || name == "." || name == ".." ? run.directory.string() : name);
    seen.insert(names.back());
  }
  if (seen.size() == runs.size()) return names;
  for (size_t r = 0; r < runs.size(); ++r) names[r] = runs[r].directory.string();
  return names;
}

std::string date_in_words(const std::string& fact) {
  constexpr size_t kDay = 10, kMinute = 16, kAll = 20;
  if (fact.size() != kAll || fact[kDay] != 'T' || fact.back() != 'Z') return fact;
  return concat(fact.substr(0, kDay), " ", fact.substr(kDay + 1, kMinute - kDay - 1), " UTC");
}

std::string metric_title(const std::string& name) {
  if (const MetricInfo* metric = find_metric(name)) return std::string(metric->title);
  return name == "loss" || name == "train_loss" ? "Loss of training"
         : name == "lr"                         ? "Learning rate"
         : name == "grad_norm"                  ? "Gradient norm, before clipping"
                                                : name;
}

std::string overview_html(const std::vector<RunRecord>& runs) {
  const std::vector<std::string> names = run_names(runs), metrics = overview_metrics(runs);
  const std::vector<std::string> options = differing_options(runs);
  std::vector<std::string> header{"run", "task"};
  header.insert(header.end(), options.begin(), options.end());
  header.push_back("seed");
  header.insert(header.end(), metrics.begin(), metrics.end());
  header.insert(header.end(), {"ended", "data_sha256", "weights_sha256"});
  HtmlTable table("Runs", header, true);
  for (size_t r = 0; r < runs.size(); ++r) {
    const RunRecord& run = runs[r];
    table.name(names[r], kMostValueBytes).text(run.option("task"));
    for (const std::string& option : options) table.text(run.effective(option), kMostValueBytes);
    table.text(run.option("seed"));
    for (const std::string& metric : metrics) {
      const auto value = run.metrics.find(metric);
      if (value == run.metrics.end())
        table.text("");
      else
        table.number(value->second);
    }
    table.text(date_in_words(fact_named(run.facts, "ended")));
    table.text(fact_named(run.facts, "data_sha256").substr(0, kShownSum));
    table.text(fact_named(run.facts, "weights_sha256").substr(0, kShownSum)).end_row();
  }
  return concat("<h2>Runs</h2>\n", table.region());
}

std::string facts_html(const RunRecord& run) {
  HtmlTable options("Options other than the defaults", {"option", "value"});
  for (const auto& [name, value] : changed_options(run)) {
    options.name(name).text(value, kMostValueBytes).end_row();
  }
  HtmlTable metrics("Metrics", {"metric", "value"});
  for (const auto& [name, value] : run.metrics) {
    metrics.name(name, kMostValueBytes).number(value).end_row();
  }
  HtmlTable facts("Facts", {"fact", "value"});
  for (const auto& [name, value] : run.facts) {
    facts.name(name, kMostValueBytes).text(value, kMostValueBytes).end_row();
  }
  return concat("<h3>Numbers, options and facts</h3>\n<div class=\"tables\">\n", metrics.html(),
                options.html(), facts.html(), "</div>\n");
}

std::string evaluation_html(const RunRecord& run, const ExplainRows& explain) {
  if (run.option("task") == "mlm") return "";  // mlm keeps no predictions
  const auto is_evaluation = [](const auto& metric) { return metric.first.starts_with("eval_"); };
  if (std::none_of(run.metrics.begin(), run.metrics.end(), is_evaluation)) {
    return "<p class=\"note\">Without evaluation there are no predictions to show.</p>\n";
  }
  try {
    if (run.option("task") == "qa") return answers_html(run);
    return run.option("regression") == "true" ? values_html(run) : labels_html(run, explain);
  } catch (const Error& error) {
    if (error.code() != ExitCode::data) throw;
    warn("the predictions of ", printable_path(run.directory), " are not shown: ", error.what());
    return concat("<p class=\"note\">The predictions of this run are not shown: ",
                  markup_escaped(error.what(), 1000), ".</p>\n");
  }
}

}  // namespace finetune
