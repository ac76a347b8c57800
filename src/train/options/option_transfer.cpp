// Options to JSON text and back, so that rank 0 can send them.
#include "train/options/option_transfer.h"

#include <nlohmann/json.hpp>

#include "train/options/table/option_table.h"

namespace finetune {
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
