// The parts of a report's page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/compare/comparison.h"
#include "experiments/compare/run_record.h"
#include "experiments/report/page/charts.h"
#include "experiments/report/report.h"

namespace finetune {

// Short and different names of runs: the directory's name, or its whole path.
std::vector<std::string> run_names(const std::vector<RunRecord>& runs);

// The settings that runs have: runs that differ only in their seed share one.
struct RunSettings {
  std::vector<size_t> of_run;               // each run's setting; it chooses the colour
  std::vector<std::string> names;           // "lr 0.003, batch-size 16", or a run's name
  std::optional<RunComparison> comparison;  // none for one run, or if runs cannot be compared
  size_t best = 0;                          // index of the best run; 0 without a comparison
};
RunSettings settings_of(const std::vector<RunRecord>& runs);

// The result in words: "84.5 % of 1,000 held-out rows right".
std::string verdict_of(const RunRecord& run);
// The result in words as the page's heading, then simpler alternatives, date, model and data.
std::string headline_html(const RunRecord& run);
// The same without the heading, with its words in the text or not.
std::string result_html(const RunRecord& run, bool with_verdict);
// The best setting as the page's heading, its best run's result, a table of all settings, and
// pictures of each option's effect. Without a comparison: a line for each run.
std::string settings_html(const std::vector<RunRecord>& runs, const RunSettings& settings);

// Losses, the evaluations' metrics, learning rate and gradient norm by step, all runs in one
// picture. Error(model).
std::string curves_html(const std::vector<RunRecord>& runs, const RunSettings& settings);

// A table of all runs: options that differ, metrics, time and memory.
std::string overview_html(const std::vector<RunRecord>& runs);
// Metrics, options that are not the defaults, and facts of one run.
std::string facts_html(const RunRecord& run);
// The metric's title, such as "Accuracy", or its name if it has no title.
std::string metric_title(const std::string& name);

// "2026-11-27 08:55 UTC" of the fact 2026-11-27T08:55:00Z; another text as it is.
std::string date_in_words(const std::string& fact);

// The run's predictions for the rows or questions of its evaluation. If they are missing, or do not
// give the run's metrics, a sentence says so.
std::string evaluation_html(const RunRecord& run, const ExplainRows& explain);

// A section for each kind of task. Error(data): there are no predictions to show. Error(model):
// they are damaged.
std::string labels_html(const RunRecord& run, const ExplainRows& explain);
std::string values_html(const RunRecord& run);
std::string answers_html(const RunRecord& run);

// Whether the probabilities of the run's predictions.csv differ from those that predict gives.
bool is_before_calibration(const RunRecord& run);
// Pictures of how sure a classifier is, and whether its probabilities are those that predict gives.
std::string sureness_html(const RunRecord& run, const Calibration& calibration, bool single_label);

// The rows of a file that check --label-errors wrote. Warns if they are not from the runs' training
// files. Error(data): check did not write the file.
std::string label_errors_html(const std::filesystem::path& file,
                              const std::vector<RunRecord>& runs);

}  // namespace finetune
