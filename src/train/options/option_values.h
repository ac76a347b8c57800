// TrainOptions to and from names and values: for config.toml, the check on --resume, and other
// processes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/options/config_file.h"
#include "train/options/table/option_table.h"
#include "train/options/train_options.h"

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

// Options and names from one process to another.
std::string options_to_text(const TrainOptions& options);
TrainOptions options_from_text(const std::string& text);

// The same of names: what is not UTF-8 in them is replaced.
std::string names_to_text(const std::vector<std::string>& names);
std::vector<std::string> names_from_text(const std::string& text);

}  // namespace finetune
