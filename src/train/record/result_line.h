// The line that --json prints: what identifies a run or an evaluation, and its metrics.
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
  std::vector<ConfigItem> options;  // that differ from the defaults, as given
  std::optional<uint64_t> seed;     // unknown for a model whose run is not there
  std::string weights_sha256;
  NamedFacts facts;  // its dates and its data: "started", "ended", "data_sha256"
};

// The options of a run that somebody has given another value than the default, those apart that
// RunIdentity has members for.
std::vector<ConfigItem> options_given(const TrainOptions& options);
// Where they were not given: virtual shards, micro-batches and tensor shards of the run's
// config.toml, which follow from the layout at its start and are part of the result. One shard is
// what a process alone has, as if nothing were said.
TrainOptions with_cut_of(TrainOptions options, const std::vector<ConfigEntry>& config);
// Where they were not given: the recipe of the run's config.toml if these options would have had
// another, and of `hf` what the run has other values of. --resume takes both from there.
TrainOptions with_recipe_of(TrainOptions options, const std::vector<ConfigEntry>& config);

// {"output":"runs/a","task":"qa","seed":42,"weights_sha256":"…","options":{"lr":0.0002,…},
// "eval_f1":88.5,…}: one object, one line, with a line end. The metrics are flat beside the rest.
// Nothing in it is obeyed by a terminal.
std::string result_line(const RunIdentity& run, const std::map<std::string, double>& metrics,
                        std::string_view more = {});

}  // namespace finetune
