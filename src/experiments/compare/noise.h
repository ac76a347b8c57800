// Is a difference between groups of runs more than noise? Paired bootstrap and spread over seeds.
#pragma once

#include <string>
#include <vector>

#include "experiments/compare/comparison.h"
#include "experiments/compare/run_record.h"

namespace finetune {

// Fills in the differences of comparison.groups to its best one.
//
// Two sources of noise, as far as each is known:
//   rows   another evaluation set. The rows of the predictions that the runs have saved are drawn
//          anew 1000 times, the same for all runs (paired bootstrap); needed: equal rows.
//   seeds  another seed. The pooled variance of the metric inside the two groups; needed: a group
//          of several runs.
// Their variances are added; the interval is Student's, with Satterthwaite's degrees of freedom.
// The random numbers are fixed: equal runs give equal answers.
void add_differences(const std::vector<RunRecord>& runs, RunComparison& comparison);

}  // namespace finetune
