// Checks, locks and describes a sweep's directory.
#include "experiments/sweep/sweep_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "core/files/directory_replacement.h"
#include "core/files/files.h"
#include "core/files/output_directory.h"
#include "core/files/temporary_name.h"
#include "core/text/json_value.h"
#include "core/text/printable.h"
#include "data/rows/csv_line.h"
#include "experiments/compare/comparison_output.h"
#include "train/resume.h"
#include "train/run/metrics_files.h"
#include "train/run/run_directory.h"

namespace finetune {
namespace {

std::string text_of(const JsonValue& json) {
  return printable_json(json.text());
}

JsonObject json_of(const Grid& grid, const SweepRun& run, const RunReport& report) {
  JsonObject options, metrics;
  for (size_t i = 0; i < grid.options.size(); ++i) options.add(grid.options[i], run.values[i]);
  JsonObject out{{"name", run.name},
                 {"output", run.options.output},
                 {"status", name_of(report.status)},
                 {"exit_code", int(report.code)},
                 {"options", options}};
  if (!report.error.empty()) out.add("error", report.error);
  if (!report.diverged_with.empty()) out.add("diverged_with", report.diverged_with);
  for (const auto& [name, value] : report.metrics) metrics.add(name, value);
  if (!report.metrics.empty()) out.add("metrics", metrics);
  return out;
}

JsonValue json_of_best(const Grid& grid, const std::vector<RunReport>& reports,
                       const SweepSummary& summary) {
  if (!summary.best) return {};
  return JsonObject{{"run", grid.runs[*summary.best].name},
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
  std::string out = concat(kSweepMarker, JsonValue(FINETUNE_VERSION).text(),
                           ",\n\"grid\":", text_of(JsonValue(grid.file)), ",\n\"runs\":[");
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
  std::string line = text_of(JsonObject{{"sweep", grid.fixed.output},
                                        {"runs", reports.size()},
                                        {"finished", count(RunStatus::finished)},
                                        {"failed", count(RunStatus::failed)},
                                        {"best", json_of_best(grid, reports, summary)}});
  line.pop_back();
  return concat(line, ",\"comparison\":", comparison_or_null(summary), "}\n");
}

std::string failure_line(const SweepRun& run, const RunReport& report) {
  return text_of(JsonObject{{"output", run.options.output},
                            {"status", name_of(report.status)},
                            {"exit_code", int(report.code)},
                            {"error", report.error}}) +
         "\n";
}

namespace {

// Child processes of a killed sweep may hold the lock for a moment, until they end too.
constexpr int kLockTries = 50;
constexpr auto kLockInterval = std::chrono::milliseconds(100);

bool is_sweep(const fs::path& directory) {
  return read_beginning(directory / "sweep.json", kSweepMarker.size()) == kSweepMarker;
}

// Whether the directory has only temporary files of a killed writer of sweep.json. Error(model).
bool holds_nothing(const fs::path& directory) {
  const std::vector<fs::path> entries = entries_of(directory);
  return std::all_of(entries.begin(), entries.end(), [](const fs::path& entry) {
    return without_temporary_suffix(entry.filename().string()) == "sweep.json";
  });
}

void check_directory(const fs::path& directory) {
  check_writable(directory);
  if (is_sweep(directory)) return;
  if (output_state(directory) == OutputState::run) {
    throw usage_error("--output ", directory.string(),
                      ": is the directory of a single run; choose another");
  }
  if (holds_nothing(directory)) return;
  throw usage_error("--output ", directory.string(),
                    ": is not empty and not a sweep's directory; choose another");
}

// Returns no differences for a damaged config.toml: the run's own turn reports the damage.
std::vector<std::string> differences_of(const SweepRun& run, const fs::path& config) try {
  if (output_state(run.options.output) != OutputState::run) return {};
  return option_differences(run.options, read_text_file(config, ExitCode::model), config.string());
} catch (const Error& error) {
  if (error.code() == ExitCode::model) return {};
  throw;
}

void compare_runs(const Grid& grid) {
  for (const SweepRun& run : grid.runs) {
    const fs::path config = fs::path(run.options.output) / "config.toml";
    const std::vector<std::string> differences = differences_of(run, config);
    if (differences.empty()) continue;
    throw usage_error(grid.file, ": options differ from those of ", config.string(), ": ",
                      join(differences, ", "), "; give the sweep's own, or another --output");
  }
}

}  // namespace

void check_sweep_directory(const Grid& grid) {
  check_directory(grid.fixed.output);
  compare_runs(grid);
}

SweepDirectory::SweepDirectory(const Grid& grid) : grid_(grid), path_(grid.fixed.output) {
  check_sweep_directory(grid);
  finetune::create_directories(path_);
  lock();
  try {
    remove_abandoned_files(path_ / "sweep.json");
    remove_abandoned_files(path_ / "sweep.csv");
    if (!is_sweep(path_)) write_tables(std::vector<RunReport>(grid.runs.size()));
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

SweepDirectory::~SweepDirectory() {
  ::close(lock_);
}

void SweepDirectory::lock() {
  lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0) throw system_failure(path_, errno, ExitCode::model);
  for (int tries = 1; ::flock(lock_, LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK) break;  // a file system without locks
    if (tries == kLockTries) {
      ::close(lock_);
      throw usage_error("--output ", path_.string(), ": another process is at work there");
    }
    std::this_thread::sleep_for(kLockInterval);
  }
}

std::vector<std::string> SweepDirectory::other_runs() const {
  std::vector<std::string> others;
  for (const fs::path& entry : entries_of(path_)) {
    const std::string name = entry.filename().string();
    const bool known = std::any_of(grid_.runs.begin(), grid_.runs.end(),
                                   [&](const SweepRun& run) { return run.name == name; });
    if (!known && output_state(entry) == OutputState::run) others.push_back(name);
  }
  std::sort(others.begin(), others.end());
  return others;
}

void SweepDirectory::write_tables(const std::vector<RunReport>& reports,
                                  const SweepSummary& summary) const {
  write_file(path_ / "sweep.json", sweep_json(grid_, reports, summary));
  write_file(path_ / "sweep.csv", sweep_csv(grid_, reports));
}

}  // namespace finetune
