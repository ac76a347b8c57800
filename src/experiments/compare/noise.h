// Tells differences between groups of runs from noise: paired bootstrap, and spread over seeds.
#pragma once

#include <string>
#include <vector>

#include "experiments/compare/comparison.h"
#include "experiments/compare/run_record.h"

namespace finetune {

// Fills in the differences of comparison.groups to its best one.
//
// There are two sources of noise, each used if it is known:
//   rows   another evaluation set. The rows of the saved predictions are drawn 1000 times, the same
//          rows for all runs (paired bootstrap). The runs must have equal rows.
//   seeds  another seed: the pooled variance of the metric in the two groups. One of them must
//          have several runs.
// The variances are added. The interval is Student's, with Satterthwaite's degrees of freedom.
// The random numbers are fixed, so equal runs give equal results.
void add_differences(const std::vector<RunRecord>& runs, RunComparison& comparison);

}  // namespace finetune
