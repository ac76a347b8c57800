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
  double mean = 0;  // its mean minus the best one's
  // The 95 % interval, if the noise is known.
  std::optional<double> low, high;
  bool more_than_noise = false;  // the interval leaves out 0
  // The sources of noise in the interval: "rows", "seeds", "rows and seeds"; "runs" in place of
  // seeds if the runs of a group differ in other options too.
  std::string noise;
  std::string unknown;  // why there is no interval, or why it lacks the rows
};

// Runs with equal values of the options that runs are compared by.
struct RunGroup {
  std::vector<std::string> values;  // of RunComparison::options
  std::vector<size_t> runs;         // indices of the runs
  std::map<std::string, Estimate> metrics;
  std::optional<Difference> difference;  // of all groups but the best
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
  std::vector<RunGroup> groups;  // best first; with `by` in order of its values
  size_t best = 0;
  std::vector<RepeatedRun> repeated;  // they are in no group

  const std::string& deciding() const { return metrics.front(); }
};

// Names of the options that may change a result and differ, in the order of --help; the seed apart.
// "incomplete" stands for parts of a run that failed.
std::vector<std::string> differing_options(const std::vector<RunRecord>& runs);

// `by`: options to group by; empty: all that differing_options() names. Data and models count by
// their content. Runs of the same options whose outcomes differ (other data under one name, another
// device, with or without the mix, incomplete) are never in one group: what differs is added to
// `by`. A run whose weights repeat those of another one counts once.
// `metrics`: empty: the runs' best-metric (else train_loss) and all others that measure their
// evaluation, the usual ones first. Error(usage): an option or metric that is unknown or that not
// all runs have; runs of several tasks without `metrics`.
RunComparison compare_runs(const std::vector<RunRecord>& runs, const std::vector<std::string>& by,
                           const std::vector<std::string>& metrics);

// The run of the best row that is best by the deciding metric: its place in `runs`.
size_t best_run(const RunComparison& comparison, const std::vector<RunRecord>& runs);

}  // namespace finetune
