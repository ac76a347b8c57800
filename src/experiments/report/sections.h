// The parts of a report's page.
#pragma once

#include <string>
#include <vector>

#include "experiments/compare/run_record.h"

namespace finetune {

// Short and different names of runs: the directory's name, or its whole path.
std::vector<std::string> run_names(const std::vector<RunRecord>& runs);

// Loss, learning rate, gradient norm and the evaluations' metrics by step, all runs in one picture.
// Error(model).
std::string curves_html(const std::vector<RunRecord>& runs);

// A table of all runs: options that differ, metrics, time and memory.
std::string overview_html(const std::vector<RunRecord>& runs);
// Options that are not the defaults, facts and metrics of one run.
std::string facts_html(const RunRecord& run);

// The run's predictions for the rows or questions of its evaluation. If they are missing, or do not
// give the run's metrics, a sentence says so.
std::string evaluation_html(const RunRecord& run);

// One for each kind of task. Error(data): there are no predictions to show. Error(model): they are
// damaged.
std::string labels_html(const RunRecord& run);
std::string values_html(const RunRecord& run);
std::string answers_html(const RunRecord& run);

}  // namespace finetune
