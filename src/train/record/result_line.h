// The line that --json prints: which run or evaluation it is, and its metrics.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "train/options/config_file.h"
#include "train/options/options.h"
#include "train/run/metrics_files.h"

namespace finetune {

struct RunIdentity {
  std::string output;  // empty: nothing was written
  std::string task;
  std::vector<ConfigItem> options;  // those that differ from their defaults
  std::optional<uint64_t> seed;     // unknown if the model's run is not found
  std::string weights_sha256;
  NamedFacts facts;  // dates and data: "started", "ended", "data_sha256"
};

// The options of a run that differ from their defaults. Options that are members of RunIdentity are
// left out.
std::vector<ConfigItem> options_given(const TrainOptions& options);
// Sets virtual shards, micro-batches and tensor shards, if they were not given, to those in the
// run's config.toml. They follow from the layout at the run's start and are part of the result. 1
// shard, the default of a single process, is left out.
TrainOptions with_cut_of(TrainOptions options, const std::vector<ConfigEntry>& config);
// If not given: takes the recipe of the run's config.toml if these options would have another, and
// for `hf` the run's numbers that differ from the recipe's. --resume does the same.
TrainOptions with_recipe_of(TrainOptions options, const std::vector<ConfigEntry>& config);

// {"output":"runs/a","task":"qa","seed":42,"weights_sha256":"…","options":{"lr":0.0002,…},
// "eval_f1":88.5,…}: one object, on one line with a line end. Metrics are members beside the
// others. The line has no control characters that a terminal would obey.
std::string result_line(const RunIdentity& run, const std::map<std::string, double>& metrics,
                        std::string_view more = {});

}  // namespace finetune
