// A report on finished runs: one HTML file that needs no network and runs no script.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "experiments/compare/run_record.h"

namespace finetune {

// Returns, for each row, the words that made its label. `rows` are rows of the run's evaluation
// data and `columns` their names. Throws Error if the rows cannot be explained.
using ExplainRows = std::function<std::vector<std::string>(
    const RunRecord& run, const std::vector<std::string>& columns,
    const std::vector<std::vector<std::string>>& rows)>;

struct ReportExtras {
  ExplainRows explain;                 // for the best run's worst errors, if a row has one label
  std::filesystem::path label_errors;  // what check --label-errors has written
};

// The same files give the same bytes. Error(model): a run's files cannot be read. Error(usage):
// `explain` is given, and the best run has not one label a row. If only the predictions cannot be
// read, the page says so.
std::string report_html(const std::vector<RunRecord>& runs, const ReportExtras& extras = {});

// Whether `path` is a file that begins like a report.
bool is_report(const std::filesystem::path& path);

}  // namespace finetune
