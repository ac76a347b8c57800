// Converts TrainOptions to names and values and back: for config.toml, for the check on --resume,
// and to send them to other processes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/options/config_file.h"
#include "train/options/table/option_table.h"
#include "train/options/train_options.h"

namespace finetune {

// The resolved options that belong to a run. Options without a value are left out.
std::vector<ConfigItem> config_items(const TrainOptions& options);
// Nothing if the option was not given, or for an empty text or list.
std::optional<ConfigValue> config_value(const OptionValue& value);

// Makes paths absolute, so that config.toml is valid in any working directory.
TrainOptions with_absolute_paths(TrainOptions options);

// Names of the options with OptionRole::result.
std::vector<std::string> result_option_names();
std::vector<std::string> all_option_names();
std::vector<std::string> list_option_names();  // options that take several values

// Text to send options to another process.
std::string options_to_text(const TrainOptions& options);
TrainOptions options_from_text(const std::string& text);

// Text to send names to another process. Bytes that are not UTF-8 are replaced.
std::string names_to_text(const std::vector<std::string>& names);
std::vector<std::string> names_from_text(const std::string& text);

}  // namespace finetune
