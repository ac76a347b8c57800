// A report on finished runs: one HTML file that needs no network and runs no script.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/compare/run_record.h"

namespace finetune {

// The same bytes for the same files. Error(model) if a run's files cannot be read; where only its
// predictions cannot, the page says so.
std::string report_html(const std::vector<RunRecord>& runs);

// Whether `path` is a file that begins as a report does.
bool is_report(const std::filesystem::path& path);

}  // namespace finetune
