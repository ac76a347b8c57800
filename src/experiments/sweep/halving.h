// Successive halving: at some evaluations on the way only the best settings of a sweep go on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "experiments/sweep/grid.h"
#include "train/recipe/recipe.h"

namespace finetune {

// Runs that differ in nothing but their seed compete as one, by their mean.
struct Setting {
  std::vector<size_t> runs;  // places in the grid
};
std::vector<Setting> settings_of(const Grid& grid);

// How long a run is, in steps.
struct RunLength {
  int64_t steps = 1;     // in all
  int64_t interval = 1;  // between evaluations

  int64_t evaluations() const { return (steps - 1) / interval + 1; }
};
RunLength length_of(TrainOptions options, const RecipeFacts& facts);

// Shares of a run's evaluations after which settings are cut to one in `eta`, rounded up, in rising
// order: 1/eta^K, ..., 1/eta. K is as large as the number of settings and that of the evaluations
// of each run allow; empty where one of them is below eta.
std::vector<double> rung_shares(int64_t settings, int64_t evaluations, int64_t eta);

// The same of a grid, by its shortest run. Error(usage) where that leaves none.
std::vector<double> rungs_of(const Grid& grid, const std::vector<RunLength>& lengths, int64_t eta);

// Places of the settings that go on, best first: one in eta of `values`, their means, rounded up. A
// setting without a value has failed and never goes on; of equals the earlier one does.
std::vector<size_t> survivors(const std::vector<std::optional<double>>& values,
                              bool larger_is_better, int64_t eta);

// The best value of the metric that decides among the run's evaluations up to this step, from its
// files; nothing if the run has not come so far. Error(model).
struct RungValue {
  std::string metric;
  double value = 0;
  std::map<std::string, double> metrics;  // eval_* of the last of these evaluations
};
std::optional<RungValue> value_at(const SweepRun& run, int64_t step);

}  // namespace finetune
