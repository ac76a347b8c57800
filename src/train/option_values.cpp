#include "train/option_values.h"

#include <type_traits>

namespace finetune {

std::vector<ConfigItem> config_items(const TrainOptions& options) {
  std::vector<ConfigItem> items;
  for_each_option(options, [&](const OptionInfo& info, const auto& value) {
    using Value = std::remove_cvref_t<decltype(value)>;
    if (info.role == OptionRole::session) return;
    if constexpr (std::is_same_v<Value, std::string> ||
                  std::is_same_v<Value, std::vector<std::string>>) {
      if (value.empty()) return;
    } else if constexpr (std::is_signed_v<Value>) {
      if (value < 0) return;  // the mark of "not given"
    }
    ConfigItem item{std::string(info.name), false};
    if constexpr (std::is_same_v<Value, uint64_t>) item.value = int64_t(value);
    else item.value = value;
    items.push_back(std::move(item));
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

std::vector<std::string> all_option_names() {
  std::vector<std::string> names;
  TrainOptions options;
  for_each_option(options, [&](const OptionInfo& info, auto&) { names.emplace_back(info.name); });
  return names;
}

}  // namespace finetune
