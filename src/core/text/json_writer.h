// Writes JSON: a value is its compact text, which objects and arrays are put together of. Cheap to
// include; scalars and indented text are written by nlohmann's library in json_writer.cpp.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace finetune {

class JsonText {
 public:
  JsonText() : text_("null") {}
  JsonText(double value);  // null if it is not finite
  template <std::integral Value>
  JsonText(Value value) : text_(std::to_string(value)) {
    if constexpr (std::is_same_v<Value, bool>) text_ = value ? "true" : "false";
  }
  // Bytes that are not UTF-8 become U+FFFD.
  JsonText(const std::convertible_to<std::string_view> auto& text) {
    append_string(std::string_view(text));
  }
  template <typename Value>
  JsonText(const std::optional<Value>& value) : JsonText(value ? JsonText(*value) : JsonText()) {}
  template <typename Value>
  JsonText(const std::vector<Value>& values);

  const std::string& text() const { return text_; }
  // Over several lines, as Python's json.dumps(indent=...) does.
  std::string indented(int blanks) const;

 protected:
  // Before the closing bracket; a comma where there are members already.
  void append_member(std::string_view member);
  void append_string(std::string_view text);

  std::string text_;
};

class JsonArray : public JsonText {
 public:
  JsonArray(std::initializer_list<JsonText> values = {}) {
    text_ = "[]";
    for (const JsonText& value : values) add(value);
  }
  void add(const JsonText& value) { append_member(value.text()); }
};

class JsonObject : public JsonText {
 public:
  JsonObject(std::initializer_list<std::pair<std::string_view, JsonText>> members = {}) {
    text_ = "{}";
    for (const auto& [name, value] : members) add(name, value);
  }
  void add(std::string_view name, const JsonText& value) {
    append_member(JsonText(name).text() + ":" + value.text());
  }
  void add_all(const JsonObject& more) {
    if (more.text_.size() > 2) append_member(more.text_.substr(1, more.text_.size() - 2));
  }
};

template <typename Value>
JsonText::JsonText(const std::vector<Value>& values) {
  JsonArray array;
  for (const Value& value : values) array.add(value);
  text_ = array.text();
}

}  // namespace finetune
