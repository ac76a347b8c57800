// Baselines: the results of simple models on the same rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tasks/task.h"

namespace finetune {

// "baseline_majority_accuracy", "baseline_ngram_accuracy", ...: for each metric that needs only
// labels or numbers and no probabilities. Also "baseline_ngram_runtime" in seconds and, if the
// linear model reads columns beside the text, their number "baseline_ngram_columns".
struct Baselines {
  Metrics metrics;
  std::vector<std::string> lines;  // for the log: what was computed, or why not
};

inline constexpr std::string_view kMoreTraining = "more --epochs, a larger --lr";
// Adds the baselines to a model's own metrics. Logs their lines and baseline_warning().
void add_baselines(const Baselines& found, Metrics& metrics,
                   std::string_view remedy = kMoreTraining);

// For a model that is mixed with n-grams: its metrics without the n-grams, as
// "baseline_unmixed_accuracy", ...
Metrics unmixed_metrics(const Metrics& alone);
// For a model that began as a linear fit to the frozen encoder: "baseline_frozen_accuracy", ...
// `start`: the metrics before the first step, or those of such a fit mixed with n-grams.
Metrics frozen_metrics(const Metrics& start);

// All names that baselines may have in the metrics of a task that evaluates by `names`.
struct BaselineKinds {
  bool ngrams = true, unmixed = true, frozen = false;  // beside the majority
};
std::vector<std::string> baseline_metric_names(const std::vector<std::string>& names,
                                               const BaselineKinds& kinds);

// Compares simpler answers to the same rows, from the metrics of a run or an evaluation: "BERT
// alone 83.0 %, words 83.4 %, commonest label 33.1 %". "BERT alone" is shown if the model is mixed
// with n-grams, "frozen features" if it began as a fit to them. Returns "" if there are no
// baselines.
std::string baseline_line(const Metrics& metrics);
// If simpler models are at least as good: a sentence with all of them. Else returns "".
std::string baseline_verdict(const Metrics& metrics);
// The first of them as a line of the log, with what to try. Else returns "".
std::string baseline_warning(const Metrics& metrics, std::string_view remedy = kMoreTraining);

}  // namespace finetune
