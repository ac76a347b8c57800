// Writes a sweep's runs as JSON and CSV.
#include "experiments/sweep/sweep_tables.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/text/printable.h"
#include "data/rows/csv_line.h"
#include "experiments/compare/comparison_output.h"
#include "train/run/metrics_files.h"

namespace finetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string text_of(const OrderedJson& json) {
  return printable_json(json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
}

OrderedJson json_of(const Grid& grid, const SweepRun& run, const RunReport& report) {
  OrderedJson out{{"name", run.name},
                  {"output", run.options.output},
                  {"status", name_of(report.status)},
                  {"exit_code", int(report.code)},
                  {"options", OrderedJson::object()}};
  for (size_t i = 0; i < grid.options.size(); ++i) out["options"][grid.options[i]] = run.values[i];
  if (!report.error.empty()) out["error"] = report.error;
  if (!report.diverged_with.empty()) out["diverged_with"] = report.diverged_with;
  if (report.metrics.empty()) return out;
  out["metrics"] = OrderedJson::object();
  for (const auto& [name, value] : report.metrics) out["metrics"][name] = value;
  return out;
}

OrderedJson json_of_best(const Grid& grid, const std::vector<RunReport>& reports,
                         const SweepSummary& summary) {
  if (!summary.best) return nullptr;
  return {{"run", grid.runs[*summary.best].name},
          {"model", best_model(grid, *summary.best)},
          {"metric", summary.metric},
          {"value", reports[*summary.best].metrics.at(summary.metric)}};
}

std::string comparison_or_null(const SweepSummary& summary) {
  return summary.comparison.empty() ? "null" : std::string(trim(summary.comparison));
}

}  // namespace

SweepSummary summary_of(const SweepResult& result) {
  if (!result.comparison) return {};
  return {comparison_json(*result.comparison, result.finished), result.best,
          result.comparison->deciding()};
}

std::string best_model(const Grid& grid, size_t best) {
  return (std::filesystem::path(grid.runs[best].options.output) / "model").string();
}

std::string sweep_json(const Grid& grid, const std::vector<RunReport>& reports,
                       const SweepSummary& summary) {
  std::string out = concat(kSweepMarker, OrderedJson(FINETUNE_VERSION).dump(),
                           ",\n\"grid\":", text_of(OrderedJson(grid.file)), ",\n\"runs\":[");
  for (size_t r = 0; r < reports.size(); ++r) {
    out += concat(r == 0 ? "\n" : ",\n", text_of(json_of(grid, grid.runs[r], reports[r])));
  }
  return concat(out, "\n],\n\"best\":", text_of(json_of_best(grid, reports, summary)),
                ",\n\"comparison\":", comparison_or_null(summary), "}\n");
}

std::string sweep_csv(const Grid& grid, const std::vector<RunReport>& reports) {
  std::set<std::string> metrics;
  for (const RunReport& report : reports) {
    for (const auto& metric : report.metrics) metrics.insert(metric.first);
  }
  std::vector<std::string> row{"run", "status", "exit_code"};
  row.insert(row.end(), grid.options.begin(), grid.options.end());
  row.insert(row.end(), metrics.begin(), metrics.end());
  row.emplace_back("error");
  std::string out;
  append_csv_row(row, out);
  for (size_t r = 0; r < reports.size(); ++r) {
    const RunReport& report = reports[r];
    row = {grid.runs[r].name, std::string(name_of(report.status)), concat(int(report.code))};
    row.insert(row.end(), grid.runs[r].values.begin(), grid.runs[r].values.end());
    for (const std::string& name : metrics) {
      const auto found = report.metrics.find(name);
      row.push_back(found == report.metrics.end() ? "" : number_text(found->second));
    }
    row.push_back(report.error);
    append_csv_row(row, out);
  }
  return out;
}

std::string sweep_line(const Grid& grid, const std::vector<RunReport>& reports,
                       const SweepSummary& summary) {
  auto count = [&](RunStatus status) {
    return std::count_if(reports.begin(), reports.end(),
                         [&](const RunReport& report) { return report.status == status; });
  };
  std::string line = text_of(OrderedJson{{"sweep", grid.fixed.output},
                                         {"runs", reports.size()},
                                         {"finished", count(RunStatus::finished)},
                                         {"failed", count(RunStatus::failed)},
                                         {"best", json_of_best(grid, reports, summary)}});
  line.pop_back();
  return concat(line, ",\"comparison\":", comparison_or_null(summary), "}\n");
}

std::string failure_line(const SweepRun& run, const RunReport& report) {
  return text_of(OrderedJson{{"output", run.options.output},
                             {"status", name_of(report.status)},
                             {"exit_code", int(report.code)},
                             {"error", report.error}}) +
         "\n";
}

}  // namespace finetune
