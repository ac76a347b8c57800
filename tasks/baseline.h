// What simple models make of the same rows, to compare a fine-tuned one with.
#pragma once

#include <string>
#include <vector>

#include "tasks/task.h"

namespace finetune {

// "baseline_majority_accuracy", "baseline_ngram_accuracy", ...: for each metric of the task's
// evaluation that labels or numbers alone have; with "baseline_ngram_runtime", in seconds.
struct Baselines {
  Metrics metrics;
  std::vector<std::string> lines;  // for the log: what was computed, or why not
};

// Puts them beside a model's own metrics. Their lines, and baseline_warning(), go to the log.
void add_baselines(const Baselines& found, Metrics& metrics);

// Of a model that is mixed with n-grams: "baseline_unmixed_accuracy", ...: its metrics without
// them.
Metrics unmixed_metrics(const Metrics& alone);

// All names that such metrics may have, for a task that evaluates by `names`.
struct BaselineKinds {
  bool ngrams = true, unmixed = true;  // beside the majority
};
std::vector<std::string> baseline_metric_names(const std::vector<std::string>& names,
                                               const BaselineKinds& kinds);

// "majority 33.1 %, n-grams 83.4 %, this model 84.0 % (accuracy)", before the latter "without
// n-grams 83.0 %" of a model that is mixed with them; from a run's or an evaluation's metrics;
// empty where there is nothing to compare with.
std::string baseline_line(const Metrics& metrics);
// Where the n-grams are better: a line that says so and what to try; else empty.
std::string baseline_warning(const Metrics& metrics);

}  // namespace finetune
