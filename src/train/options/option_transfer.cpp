// Options to JSON text and back, so that rank 0 can send them.
#include "train/options/option_transfer.h"

#include <nlohmann/json.hpp>

namespace finetune {
namespace {

using nlohmann::json;

template <typename T>
json to_json(const std::optional<T>& value) {
  return value ? json(*value) : json();
}
template <typename T>
json to_json(const T& value) {
  return json(value);
}
template <typename T>
void from_json(const json& value, std::optional<T>& out) {
  if (value.is_null())
    out.reset();
  else
    out = value.get<T>();
}
template <typename T>
void from_json(const json& value, T& out) {
  out = value.get<T>();
}

}  // namespace

std::string options_to_text(const TrainOptions& options) {
  json all = json::object();
  for_each_option(options, [&](const OptionInfo& info, const auto& member) {
    all[std::string(info.name)] = to_json(member);
  });
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

TrainOptions options_from_text(const std::string& text) {
  TrainOptions options;
  const json all = json::parse(text);
  for_each_option(options, [&](const OptionInfo& info, auto& member) {
    from_json(all.at(std::string(info.name)), member);
  });
  return options;
}

std::string names_to_text(const std::vector<std::string>& names) {
  return json(names).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<std::string> names_from_text(const std::string& text) {
  return json::parse(text).get<std::vector<std::string>>();
}

}  // namespace finetune
