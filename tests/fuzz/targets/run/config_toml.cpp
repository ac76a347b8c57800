// config.toml: reading what was written gives the same.
#include <algorithm>

#include "core/error.h"
#include "fuzz/target.h"
#include "train/options/config_file.h"
#include "train/options/option_values.h"
#include "train/options/option_words.h"

namespace finetune::fuzz {
namespace {

// Names that need no quotes, such as those of options.
bool is_plain(const std::string& name) {
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return c == '-' || (c < 0x80 && std::isalnum(c)); });
}

void check_written(const std::vector<ConfigEntry>& entries) {
  std::vector<ConfigItem> items;
  for (const ConfigEntry& entry : entries) {
    if (is_plain(entry.name)) items.push_back({entry.name, entry.values});
  }
  const auto again = parse_config_text(write_config(items, "written"), "again.toml");
  require(again.size() == items.size(), again.size(), " of ", items.size(), " entries come back");
  for (size_t i = 0; i < items.size(); ++i) {
    require(again[i].name == items[i].name &&
                again[i].values == std::get<std::vector<std::string>>(items[i].value),
            "entry ", in_quotes(items[i].name), " comes back changed");
  }
}

void check_config_toml(std::string_view input) {
  const auto entries = parse_config_text(input, "config.toml");
  require(config_differences(entries, entries, all_option_names()).empty(),
          "a file differs from itself");
  check_written(entries);
  TrainOptions options;
  const std::vector<std::string> names = all_option_names();
  for (const ConfigEntry& entry : entries) {
    if (std::find(names.begin(), names.end(), entry.name) == names.end()) continue;
    if (entry.values.size() == 1) set_option(options, entry.name, entry.values);
  }
  check_config_names(entries, names, "config.toml");
}

const Registration kConfigTomlTarget({.name = "config_toml", .run = check_config_toml});

}  // namespace
}  // namespace finetune::fuzz
