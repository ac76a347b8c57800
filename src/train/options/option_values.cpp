// Option values as config items, and lists of option names.
#include "train/options/option_values.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "train/options/table/option_table.h"

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

namespace {

using nlohmann::json;

struct ToJson {
  json operator()(std::monostate) const { return {}; }
  template <typename Value>
  json operator()(const Value& value) const {
    return value;
  }
};

struct FromJson {
  const json& value;

  template <typename Value>
  void operator()(Value* to) const {
    *to = value.get<Value>();
  }
  template <typename Number>
  void operator()(std::optional<Number>* to) const {
    if (value.is_null())
      to->reset();
    else
      *to = value.get<Number>();
  }
};

}  // namespace

std::string options_to_text(const TrainOptions& options) {
  json all = json::object();
  for (const TrainOption& option : train_options()) {
    all[std::string(option.info.name)] = std::visit(ToJson(), option.value_in(options));
  }
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

TrainOptions options_from_text(const std::string& text) {
  TrainOptions options;
  const json all = json::parse(text);
  for (const TrainOption& option : train_options()) {
    std::visit(FromJson{all.at(std::string(option.info.name))}, option.in(options));
  }
  return options;
}

std::string names_to_text(const std::vector<std::string>& names) {
  return json(names).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<std::string> names_from_text(const std::string& text) {
  return json::parse(text).get<std::vector<std::string>>();
}

}  // namespace finetune
