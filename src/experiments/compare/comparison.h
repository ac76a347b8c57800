// Compares runs: options that differ, metrics over seeds, the best group, differences and noise.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/numeric/estimate.h"
#include "experiments/compare/run_record.h"

namespace finetune {

// How a group's deciding metric differs from the best group's.
struct Difference {
  double mean = 0;  // the group's mean minus the best group's
  // The 95 % interval, if the noise is known.
  std::optional<double> low, high;
  bool more_than_noise = false;  // the interval excludes 0
  // The sources of noise in the interval: "rows", "seeds", "rows and seeds"; "runs" in place of
  // seeds if the runs of a group differ in other options too.
  std::string noise;
  std::string unknown;  // why there is no interval, or why it lacks the rows
};

// Runs with equal values of RunComparison::options.
struct RunGroup {
  std::vector<std::string> values;  // of RunComparison::options
  std::vector<size_t> runs;         // indices of the runs
  std::map<std::string, Estimate> metrics;
  std::optional<Difference> difference;  // none for the best group
};

// A run with the seed, the options and the weights of another run.
struct RepeatedRun {
  size_t run = 0, of = 0;  // indices of the runs
};

struct RunComparison {
  std::vector<std::string> options;  // that differ between groups; also "incomplete"
  std::vector<std::string> within;   // that differ inside groups, except the seed
  std::vector<std::string> metrics;  // that all runs have; the first decides
  size_t shown = 0;                  // how many of them a table for people shows
  bool larger_is_better = true;
  std::vector<RunGroup> groups;  // best first; with `by`, in order of its values
  size_t best = 0;
  std::vector<RepeatedRun> repeated;  // they are in no group

  const std::string& deciding() const { return metrics.front(); }
};

// Returns the options, except the seed, that differ and may change a result, in the order of
// --help. "incomplete" stands for parts of a run that failed.
std::vector<std::string> differing_options(const std::vector<RunRecord>& runs);

// `by`: options to group by; if empty, all of differing_options(). Data and models are compared by
// content. Runs with the same options but different outcomes (other data under one name, another
// device, with or without the mix, incomplete) are never in one group: the outcome is added to
// `by`. Runs with the same weights, options and seed count once.
// `metrics`: if empty, the runs' best-metric (else train_loss) and all others that measure the
// evaluation, the usual ones first. Error(usage): an option or metric is unknown, a run lacks the
// metric, or the runs have several tasks and `metrics` is empty.
RunComparison compare_runs(const std::vector<RunRecord>& runs, const std::vector<std::string>& by,
                           const std::vector<std::string>& metrics);

// Returns the index in `runs` of the best group's best run by the deciding metric.
size_t best_run(const RunComparison& comparison, const std::vector<RunRecord>& runs);

}  // namespace finetune
