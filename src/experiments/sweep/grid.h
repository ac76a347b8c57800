// The runs of a sweep: all combinations of its lists and drawn values, each with a name.
#pragma once

#include <string>
#include <vector>

#include "experiments/sweep/grid/grid_file.h"
#include "train/options/options.h"

namespace finetune {

struct SweepRun {
  // Of the options that [sweep] names, in its order: "lr=1e-4,seed=1". The run's directory inside
  // the sweep's. A value that no file name can have is escaped as in an address (%2F).
  std::string name;
  std::vector<std::string> values;  // of Grid::options, as they stand in the name, unescaped
  TrainOptions options;             // `output` is the run's directory
};

struct Grid {
  std::string file;
  TrainOptions fixed;                // `output` is the sweep's directory
  std::vector<std::string> options;  // that [sweep] names, in its order
  std::vector<SweepRun> runs;        // the last option changes fastest
};

// Value k of a drawn option depends on its name, range and seed alone: more draws add runs. Drawn
// numbers have three significant digits. `output`: the sweep's directory; empty: the file's own.
// Error(usage) naming file, line and value: a value that the option cannot have or that occurs
// twice, a range of fewer values than draws, too many runs, options that do not go together, no
// output.
Grid expand_grid(const GridFile& file, const std::string& output);

}  // namespace finetune
