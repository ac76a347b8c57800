// Option values as config items, and lists of option names.
#include "train/options/option_values.h"

#include <filesystem>
#include <optional>
#include <type_traits>

namespace finetune {
namespace {

ConfigValue config_value(uint64_t value) {
  return int64_t(value);
}
template <typename Value>
ConfigValue config_value(const Value& value) {
  return value;
}

template <typename Value>
std::optional<ConfigValue> given(const std::optional<Value>& value) {
  return value ? std::optional(config_value(*value)) : std::nullopt;
}
template <typename Value>
std::optional<ConfigValue> given(const Value& value) {
  if constexpr (requires { value.empty(); }) {
    if (value.empty()) return std::nullopt;
  }
  return config_value(value);
}

void make_absolute(std::string& path) {
  if (!path.empty()) path = std::filesystem::absolute(path).lexically_normal().string();
}

}  // namespace

TrainOptions with_absolute_paths(TrainOptions options) {
  for (std::string* path : {&options.model, &options.output}) {
    make_absolute(*path);
  }
  for (auto* paths : {&options.train, &options.eval, &options.baselines}) {
    for (std::string& path : *paths) make_absolute(path);
  }
  return options;
}

std::vector<ConfigItem> config_items(const TrainOptions& options) {
  std::vector<ConfigItem> items;
  for_each_option(options, [&](const OptionInfo& info, const auto& value) {
    if (info.role == OptionRole::session) return;
    if (auto kept = given(value)) items.push_back({std::string(info.name), std::move(*kept)});
  });
  return items;
}

std::vector<std::string> result_option_names() {
  std::vector<std::string> names;
  TrainOptions options;
  for_each_option(options, [&](const OptionInfo& info, auto&) {
    if (info.role == OptionRole::result) names.emplace_back(info.name);
  });
  return names;
}

std::vector<std::string> list_option_names() {
  std::vector<std::string> names;
  TrainOptions options;
  for_each_option(options, [&](const OptionInfo& info, auto& value) {
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(value)>,
                                 std::vector<std::string>>) {
      names.emplace_back(info.name);
    }
  });
  return names;
}

std::string option_help(std::string_view name) {
  std::string help;
  TrainOptions options;
  for_each_option(options, [&](const OptionInfo& info, auto&) {
    if (info.name == name) help = info.help;
  });
  if (help.empty()) throw internal_error(concat("train has no option --", name));
  return help;
}

std::vector<std::string> all_option_names() {
  std::vector<std::string> names;
  TrainOptions options;
  for_each_option(options, [&](const OptionInfo& info, auto&) { names.emplace_back(info.name); });
  return names;
}

}  // namespace finetune
