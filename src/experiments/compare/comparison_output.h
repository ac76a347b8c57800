// A comparison of runs as text, Markdown, CSV or JSON.
#pragma once

#include <string>
#include <vector>

#include "experiments/compare/comparison.h"

namespace finetune {

// For people: aligned columns, or a Markdown table; then the best group and each difference to it.
// Control characters in values are escaped.
std::string comparison_text(const RunComparison& comparison, const std::vector<RunRecord>& runs,
                            bool markdown);
// One row per group: the options, runs, seeds (joined by spaces), each metric and its sd, then
// difference, interval_low, interval_high, more_than_noise (true, false, or empty: not known).
std::string comparison_csv(const RunComparison& comparison, const std::vector<RunRecord>& runs);
// One object on one line (docs/reference/files.md).
std::string comparison_json(const RunComparison& comparison, const std::vector<RunRecord>& runs);

}  // namespace finetune
