// TrainOptions to and from names and values: config.toml and the check on --resume.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/options/config_file.h"
#include "train/options/table/option_table.h"

namespace finetune {

// The options that belong to a run, as resolved; those that were not given and have no value are
// left out.
std::vector<ConfigItem> config_items(const TrainOptions& options);
// Nothing for an option that was not given, and for an empty text or list.
std::optional<ConfigValue> config_value(const OptionValue& value);

// Paths that hold from any working directory, for config.toml.
TrainOptions with_absolute_paths(TrainOptions options);

// Names of the options with OptionRole::result.
std::vector<std::string> result_option_names();
std::vector<std::string> all_option_names();
std::vector<std::string> list_option_names();  // those that take several values

}  // namespace finetune
