// Option values as config items, and lists of option names.
#include "train/options/option_values.h"

#include <filesystem>
#include <optional>

#include "core/text/json_value.h"
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

struct ToJson {
  JsonValue operator()(std::monostate) const { return {}; }
  template <typename Value>
  JsonValue operator()(const Value& value) const {
    return value;
  }
};

struct FromJson {
  const JsonValue& value;

  template <typename Value>
  void operator()(Value* to) const {
    *to = value.as<Value>().value();
  }
  template <typename Number>
  void operator()(std::optional<Number>* to) const {
    *to = value.as<Number>();
  }
};

}  // namespace

std::string options_to_text(const TrainOptions& options) {
  JsonObject all;
  for (const TrainOption& option : train_options()) {
    all.add(option.info.name, std::visit(ToJson(), option.value_in(options)));
  }
  return all.text();
}

TrainOptions options_from_text(const std::string& text) {
  TrainOptions options;
  const JsonValue all = JsonValue::parse(text);
  for (const TrainOption& option : train_options()) {
    std::visit(FromJson{all[option.info.name]}, option.in(options));
  }
  return options;
}

std::string names_to_text(const std::vector<std::string>& names) {
  return JsonValue(names).text();
}

std::vector<std::string> names_from_text(const std::string& text) {
  return JsonValue::parse(text).as<std::vector<std::string>>().value();
}

}  // namespace finetune
