// A report on finished runs: one HTML file that needs no network and runs no script.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/compare/run_record.h"

namespace finetune {

// The same files give the same bytes. Error(model): a run's files cannot be read. If only the
// predictions cannot be read, the page says so.
std::string report_html(const std::vector<RunRecord>& runs);

// Whether `path` is a file that begins like a report.
bool is_report(const std::filesystem::path& path);

}  // namespace finetune
