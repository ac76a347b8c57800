// Writes scalars and indented JSON.
#include "core/text/json_writer.h"

#include <nlohmann/json.hpp>

namespace finetune {
namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

JsonText::JsonText(double value) : text_(dumped(Json(value))) {}

std::string JsonText::indented(int blanks) const {
  return dumped(Json::parse(text_), blanks);
}

void JsonText::append_member(std::string_view member) {
  const char end = text_.back();
  text_.back() = ',';
  if (text_.size() == 2) text_.pop_back();
  text_.append(member) += end;
}

void JsonText::append_string(std::string_view text) {
  text_ = dumped(Json(text));
}

}  // namespace finetune
