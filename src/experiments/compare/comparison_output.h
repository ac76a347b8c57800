// A comparison of runs as text, Markdown, CSV or JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "experiments/compare/comparison.h"

namespace finetune {

// For people: aligned columns, or a Markdown table; then the best group and each difference to it.
// Control characters in values are escaped. A table wider than `columns` gets fewer metrics, and
// differences without words; 0: any width.
std::string comparison_text(RunComparison comparison, const std::vector<RunRecord>& runs,
                            bool markdown, size_t columns = 0);
// One row per group: the options, runs, seeds (joined by spaces), each metric and its sd, then
// difference, interval_low, interval_high, more_than_noise (true, false, or empty: not known).
std::string comparison_csv(const RunComparison& comparison, const std::vector<RunRecord>& runs);
// One object on one line (docs/reference/files.md).
std::string comparison_json(const RunComparison& comparison, const std::vector<RunRecord>& runs);

}  // namespace finetune
