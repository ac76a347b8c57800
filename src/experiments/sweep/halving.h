// Successive halving: at some evaluations only the best settings of a sweep continue.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "experiments/sweep/grid.h"
#include "train/recipe/recipe.h"

namespace finetune {

// Runs that differ only in their seed are one setting; it competes with their mean.
struct Setting {
  std::vector<size_t> runs;  // places in the grid
};
std::vector<Setting> settings_of(const Grid& grid);

// The length of a run in steps.
struct RunLength {
  int64_t steps = 1;     // in all
  int64_t interval = 1;  // between evaluations

  int64_t evaluations() const { return (steps - 1) / interval + 1; }
};
RunLength length_of(TrainOptions options, const RecipeFacts& facts);

// Returns the shares of a run's evaluations after which 1/`eta` of the settings continue (rounded
// up), in rising order: 1/eta^K, ..., 1/eta. K is as large as the numbers of settings and of
// evaluations allow; the result is empty if one of them is below eta.
std::vector<double> rung_shares(int64_t settings, int64_t evaluations, int64_t eta);

// The rungs of a grid, from its shortest run. Error(usage): there are none.
std::vector<double> rungs_of(const Grid& grid, const std::vector<RunLength>& lengths, int64_t eta);

// Returns the settings that continue, best first: 1/`eta` of them, rounded up, by their means in
// `values`. A setting without a value has failed and never continues. Of equal settings the earlier
// one continues.
std::vector<size_t> survivors(const std::vector<std::optional<double>>& values,
                              bool larger_is_better, int64_t eta);

// Reads the best value of the deciding metric up to this step from the run's files; nothing if the
// run has not reached the step. Error(model).
struct RungValue {
  std::string metric;
  double value = 0;
  std::map<std::string, double> metrics;  // eval_* of the last of these evaluations
};
std::optional<RungValue> value_at(const SweepRun& run, int64_t step);

}  // namespace finetune
