// Baselines: the results of simple models on the same rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tasks/task.h"

namespace finetune {

// "baseline_majority_accuracy", "baseline_ngram_accuracy", ...: for each metric that needs labels
// or numbers alone, no probabilities; and "baseline_ngram_runtime", in seconds, and where the
// linear model reads columns beside the text their number, "baseline_ngram_columns".
struct Baselines {
  Metrics metrics;
  std::vector<std::string> lines;  // for the log: what was computed, or why not
};

inline constexpr std::string_view kMoreTraining = "more --epochs, a larger --lr";
// Adds them to a model's own metrics. Logs their lines and baseline_warning().
void add_baselines(const Baselines& found, Metrics& metrics,
                   std::string_view remedy = kMoreTraining);

// For a model that is mixed with n-grams: "baseline_unmixed_accuracy", ...: the metrics of the
// model alone.
Metrics unmixed_metrics(const Metrics& alone);
// For a model that began as a linear fit to the frozen encoder: "baseline_frozen_accuracy", ... of
// `start`, the metrics before the first step, or those of such a fit that is mixed with n-grams.
Metrics frozen_metrics(const Metrics& start);

// All names that such metrics may have, for a task that evaluates by `names`.
struct BaselineKinds {
  bool ngrams = true, unmixed = true, frozen = false;  // beside the majority
};
std::vector<std::string> baseline_metric_names(const std::vector<std::string>& names,
                                               const BaselineKinds& kinds);

// What simpler answers to the same rows reach, from the metrics of a run or an evaluation: "BERT
// alone 83.0 %, words alone 83.4 %, always the commonest label 33.1 %". BERT alone is part of it
// for a model that is mixed with n-grams, frozen features for one that began as a fit to them.
// Empty if there are no baselines.
std::string baseline_line(const Metrics& metrics);
// If a simpler model is better than the model: a line that says so and what to try; else empty.
std::string baseline_warning(const Metrics& metrics, std::string_view remedy = kMoreTraining);

}  // namespace finetune
