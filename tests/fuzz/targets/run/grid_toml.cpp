// A sweep's grid.toml: the runs that it makes.
#include <set>

#include "experiments/sweep/grid.h"
#include "fuzz/target.h"

namespace finetune::fuzz {
namespace {

void check_grid(std::string_view input) {
  const GridFile file = parse_grid(input, "grid.toml");
  require(!file.swept.empty(), "a grid of nothing");
  const Grid grid = expand_grid(file, "sweep");
  std::set<std::string_view> names;
  require(!grid.runs.empty(), "a grid without runs");
  for (const SweepRun& run : grid.runs) {
    require(names.insert(run.name).second, "two runs are named ", in_quotes(run.name));
    require(run.name.size() < 256 && run.name.find('/') == std::string::npos, in_quotes(run.name),
            " is no name of a directory");
    require(run.values.size() == grid.options.size(), "values are not one an option");
  }
}

// Ten thousand runs, each with its options.
const Registration kGridTomlTarget({.name = "grid_toml",
                                    .run = check_grid,
                                    .memory = size_t{256} << 20});

}  // namespace
}  // namespace finetune::fuzz
