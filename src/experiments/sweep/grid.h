// The runs of a sweep: all combinations of its lists and of values drawn at random from its ranges.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/sweep/grid_file.h"
#include "train/options/options.h"

namespace finetune {

struct SweepRun {
  // The options of [sweep] in its order: "lr=1e-4,seed=1". It is the run's directory inside the
  // sweep's. Characters that a file name cannot have are escaped as in a URL (%2F).
  std::string name;
  std::vector<std::string> values;  // of Grid::options, unescaped
  TrainOptions options;             // `output` is the run's directory
};

struct Grid {
  std::string file;
  TrainOptions fixed;                // `output` is the sweep's directory
  std::vector<std::string> options;  // names in [sweep], in its order
  std::vector<SweepRun> runs;        // the last option changes fastest
};

// Makes the runs of a grid. Value k of a drawn option depends only on the option's name, range and
// seed, so more draws add runs. Drawn numbers have three significant digits. `output`: the sweep's
// directory; empty: the one in the file. Error(usage), naming file, line and value: an invalid
// value or one that occurs twice, a range with fewer values than draws, too many runs, options that
// exclude each other, no output.
Grid expand_grid(const GridFile& file, const std::string& output);

// Returns draw `number` of the option as text. `whole`: the range has whole numbers only. The
// result depends only on the arguments, so that more draws continue earlier ones.
std::string drawn_value(const std::string& option, const SweptRange& range, bool whole,
                        uint64_t seed, uint32_t number);

}  // namespace finetune
