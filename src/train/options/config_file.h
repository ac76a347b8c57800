// config.toml: a run's options by their command-line names. The subset of TOML 1.0 that options
// need: `name = value` lines and comments; strings, numbers, booleans, and arrays of these (over
// several lines if need be). No tables, dates or multi-line strings: each is an error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.h"

namespace finetune {

// One option as read: its values as the command line would take them ("true", "5e-05", "a b").
struct ConfigEntry {
  std::string name;                 // with '-', even if the file has '_'
  std::vector<std::string> values;  // one, or the array's values
  bool is_array = false;
  int line = 0;
};

// Error(code) naming file and line for a syntax error, a duplicate name or invalid UTF-8. `code` is
// ExitCode::usage for a file by the user, and ExitCode::model for a run's own file.
std::vector<ConfigEntry> read_config(const std::filesystem::path& path,
                                     ExitCode code = ExitCode::usage);
std::vector<ConfigEntry> parse_config_text(std::string_view text, const std::string& file_name,
                                           ExitCode code = ExitCode::usage);

// Error(usage) "file:line: unknown option 'lrr' (did you mean lr?)" for a name not in `known`.
void check_config_names(const std::vector<ConfigEntry>& entries,
                        const std::vector<std::string>& known, const std::string& file_name);

using ConfigValue = std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;
struct ConfigItem {
  std::string name;
  ConfigValue value;
};
// One line per item, in order, after `comment` (one line, without '#', may be empty). Doubles read
// back to the same value. Strings must be UTF-8.
std::string write_config(const std::vector<ConfigItem>& items, std::string_view comment);

// The entry's value (the first one of an array); empty if there is no entry.
std::string first_value(const std::vector<ConfigEntry>& entries, std::string_view name);

// Adds missing options with the behaviour that runs had before these options existed.
void add_values_of_before(std::vector<ConfigEntry>& entries);

// The options of `names` that differ between two configurations, for messages: "lr (5e-05 there,
// 0.0001 now)". An option that one side lacks differs from any value. Numbers are compared as
// numbers.
std::vector<std::string> config_differences(const std::vector<ConfigEntry>& there,
                                            const std::vector<ConfigEntry>& now,
                                            const std::vector<std::string>& names);

}  // namespace finetune
