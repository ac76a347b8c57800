// Option values as config items, and lists of option names.
#include "train/options/option_values.h"

#include <filesystem>
#include <optional>

namespace finetune {
namespace {

struct AsConfig {
  std::optional<ConfigValue> operator()(std::monostate) const { return std::nullopt; }
  std::optional<ConfigValue> operator()(uint64_t value) const { return int64_t(value); }
  std::optional<ConfigValue> operator()(const std::string& value) const {
    return unless_empty(value);
  }
  std::optional<ConfigValue> operator()(const std::vector<std::string>& value) const {
    return unless_empty(value);
  }
  template <typename Value>
  std::optional<ConfigValue> operator()(const Value& value) const {
    return value;
  }

 private:
  template <typename Value>
  static std::optional<ConfigValue> unless_empty(const Value& value) {
    return value.empty() ? std::nullopt : std::optional<ConfigValue>(value);
  }
};

void make_absolute(std::string& path) {
  if (!path.empty()) path = std::filesystem::absolute(path).lexically_normal().string();
}

template <typename Fits>
std::vector<std::string> names_that(Fits fits) {
  std::vector<std::string> names;
  for (const TrainOption& option : train_options()) {
    if (fits(option)) names.emplace_back(option.info.name);
  }
  return names;
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

std::optional<ConfigValue> config_value(const OptionValue& value) {
  return std::visit(AsConfig(), value);
}

std::vector<ConfigItem> config_items(const TrainOptions& options) {
  std::vector<ConfigItem> items;
  for (const TrainOption& option : train_options()) {
    if (option.info.role == OptionRole::session) continue;
    if (auto value = config_value(option.value_in(options))) {
      items.push_back({std::string(option.info.name), std::move(*value)});
    }
  }
  return items;
}

std::vector<std::string> result_option_names() {
  return names_that(
      [](const TrainOption& option) { return option.info.role == OptionRole::result; });
}

std::vector<std::string> list_option_names() {
  TrainOptions any;
  return names_that(
      [&](const TrainOption& option) { return kind_of(option.in(any)) == OptionKind::list; });
}

std::vector<std::string> all_option_names() {
  return names_that([](const TrainOption&) { return true; });
}

}  // namespace finetune
