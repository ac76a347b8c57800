// A JSON value: parsed or put together, looked into, edited, written. Cheap to include: simdjson
// is used in json_value.cpp alone.
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

class JsonValue {
 public:
  using Items = std::vector<JsonValue>;
  using Members = std::vector<std::pair<std::string, JsonValue>>;

  JsonValue() : text_("null") {}
  JsonValue(double value);  // null if it is not finite
  template <std::integral Value>
  JsonValue(Value value) : text_(std::to_string(value)) {
    if constexpr (std::is_same_v<Value, bool>) text_ = value ? "true" : "false";
  }
  JsonValue(const std::convertible_to<std::string_view> auto& text)
      : kind_(Kind::string), text_(std::string_view(text)) {}
  template <typename Value>
  JsonValue(const std::optional<Value>& value)
      : JsonValue(value ? JsonValue(*value) : JsonValue()) {}
  template <typename Value>
  JsonValue(const std::vector<Value>& values)
      : kind_(Kind::array), items_(values.begin(), values.end()) {}

  // Null if the text is not JSON. Of members with one name the last one's value counts, at the
  // first one's place.
  static JsonValue parse(std::string_view text);

  bool is_array() const { return kind_ == Kind::array; }
  bool is_object() const { return kind_ == Kind::object; }
  // As bool, an integer, float, double or std::string, or a vector of them (json_value.cpp lists
  // the types); nothing if it is another type. A number with a point is not an integer.
  template <typename T>
  std::optional<T> as() const;
  const Items& items() const { return items_; }        // of an array
  const Members& members() const { return members_; }  // of an object
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  // Null if there is no such member.
  const JsonValue& operator[](std::string_view key) const&;
  const JsonValue& operator[](std::string_view key) && = delete;  // would not live on

  // Of an object. A new member is the last one.
  void set(std::string_view key, JsonValue value);
  void erase(std::string_view key);

  // Compact. Bytes that are not UTF-8 become U+FFFD.
  std::string text() const;
  // Over several lines, as Python's json.dumps(indent=...) does.
  std::string indented(int blanks) const;

 protected:
  enum class Kind : uint8_t { scalar, string, array, object };

  Kind kind_ = Kind::scalar;
  std::string text_;  // of a string; of other scalars as JSON
  Items items_;
  Members members_;

 private:
  const JsonValue* find(std::string_view key) const;
  void append_to(std::string& out, std::optional<int> blanks, int margin) const;
};

class JsonArray : public JsonValue {
 public:
  JsonArray(std::initializer_list<JsonValue> values = {}) {
    kind_ = Kind::array;
    items_ = values;
  }
  void add(JsonValue value) { items_.push_back(std::move(value)); }
};

class JsonObject : public JsonValue {
 public:
  JsonObject(std::initializer_list<std::pair<std::string_view, JsonValue>> members = {}) {
    kind_ = Kind::object;
    for (const auto& [name, value] : members) add(name, value);
  }
  // The name must be new.
  void add(std::string_view name, JsonValue value) {
    members_.emplace_back(name, std::move(value));
  }
  void add_all(const JsonObject& more) {
    for (const auto& [name, value] : more.members_) add(name, value);
  }
};

// In quotes; what is not ASCII, and the control character U+007F, as \u.... if `ascii`.
void append_json_string(std::string_view text, std::string& out, bool ascii = false);

}  // namespace finetune
