// Parses JSON with simdjson, and writes it.
#include "core/text/json_value.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "core/error.h"
#include "core/text/json_text.h"
#include "core/text/utf8.h"

namespace finetune {
namespace {

using simdjson::dom::element;

JsonValue value_of(const element& json) {
  switch (json.type()) {
    case simdjson::dom::element_type::ARRAY: {
      JsonArray out;
      for (const element item : simdjson::dom::array(json)) out.add(value_of(item));
      return out;
    }
    case simdjson::dom::element_type::OBJECT: {
      std::unordered_map<std::string_view, element> last;
      for (const auto& field : simdjson::dom::object(json)) last[field.key] = field.value;
      JsonObject out;
      for (const auto& field : simdjson::dom::object(json)) {
        if (const auto found = last.extract(field.key)) {
          out.add(field.key, value_of(found.mapped()));
        }
      }
      return out;
    }
    case simdjson::dom::element_type::INT64:
      return int64_t(json);
    case simdjson::dom::element_type::UINT64:
      return uint64_t(json);
    case simdjson::dom::element_type::DOUBLE:
      return double(json);
    case simdjson::dom::element_type::STRING:
      return std::string_view(json);
    case simdjson::dom::element_type::BOOL:
      return bool(json);
    default:
      return {};
  }
}

void append_escape(uint32_t unit, std::string& out) {
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += "0123456789abcdef"[(unit >> shift) & 15];
}

void append_character(char32_t c, bool ascii, std::string& out) {
  constexpr std::string_view kShort = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
  const size_t place = c < 0x80 ? kShort.find(char(c)) : kShort.npos;
  if (place != kShort.npos) {
    out += {'\\', kLetters[place]};
  } else if (c >= 0x20 && (c < 0x7F || !ascii)) {
    utf8::append(c, out);
  } else if (c < 0x10000) {
    append_escape(c, out);
  } else {
    append_escape(0xD7C0 + (c >> 10), out);
    append_escape(0xDC00 + (c & 0x3FF), out);
  }
}

}  // namespace

void append_json_string(std::string_view text, std::string& out, bool ascii) {
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; };
  out += '"';
  for (size_t at = 0; at < text.size();) {
    const auto rest = text.substr(at);
    const auto plain = size_t(std::find_if_not(rest.begin(), rest.end(), is_plain) - rest.begin());
    out += rest.substr(0, plain);
    if (plain == rest.size()) break;
    const utf8::Decoded next = utf8::decode(rest, plain);
    append_character(next.c, ascii, out);
    at += plain + next.length;
  }
  out += '"';
}

// std::to_chars writes 3 of 1000 numbers with other digits, but sums of files that earlier versions
// have written are of these.
JsonValue::JsonValue(double value) : JsonValue() {
  if (!std::isfinite(value)) return;
  char digits[32];
  text_.assign(digits, simdjson::internal::to_chars(digits, digits + sizeof digits, value));
}

JsonValue JsonValue::parse(std::string_view text) {
  simdjson::dom::parser parser;
  element root;
  auto error = parser.parse(text.data(), text.size()).get(root);
  if (error) error = parser.parse(with_long_integers_as_doubles(text)).get(root);
  if (!error) return value_of(root);
  json_fault(error);  // throws where memory is short
  return {};
}

template <typename T>
std::optional<T> JsonValue::as() const {
  if constexpr (std::is_same_v<T, std::string>) {
    return kind_ == Kind::string ? std::optional(text_) : std::nullopt;
  } else if constexpr (std::is_same_v<T, bool>) {
    const bool is_true = text_ == "true", is_truth = is_true || text_ == "false";
    return kind_ == Kind::scalar && is_truth ? std::optional(is_true) : std::nullopt;
  } else if constexpr (std::is_arithmetic_v<T>) {
    std::conditional_t<std::is_integral_v<T>, T, double> value = 0;
    const char* end = text_.data() + text_.size();
    const auto [place, error] = std::from_chars(text_.data(), end, value);
    const bool is_whole = kind_ == Kind::scalar && error == std::errc() && place == end;
    return is_whole ? std::optional(T(value)) : std::nullopt;
  } else {
    T out;
    for (const JsonValue& item : items_) {
      auto value = item.as<typename T::value_type>();
      if (!value) return std::nullopt;
      out.push_back(*std::move(value));
    }
    return is_array() ? std::optional(std::move(out)) : std::nullopt;
  }
}
template std::optional<bool> JsonValue::as() const;
template std::optional<int> JsonValue::as() const;
template std::optional<int64_t> JsonValue::as() const;
template std::optional<uint64_t> JsonValue::as() const;
template std::optional<float> JsonValue::as() const;
template std::optional<double> JsonValue::as() const;
template std::optional<std::string> JsonValue::as() const;
template std::optional<std::vector<int32_t>> JsonValue::as() const;
template std::optional<std::vector<int64_t>> JsonValue::as() const;
template std::optional<std::vector<float>> JsonValue::as() const;
template std::optional<std::vector<double>> JsonValue::as() const;
template std::optional<std::vector<std::string>> JsonValue::as() const;

const JsonValue* JsonValue::find(std::string_view key) const {
  for (const auto& [name, value] : members_) {
    if (name == key) return &value;
  }
  return nullptr;
}

const JsonValue& JsonValue::operator[](std::string_view key) const& {
  static const JsonValue null;
  const JsonValue* found = find(key);
  return found ? *found : null;
}

void JsonValue::set(std::string_view key, JsonValue value) {
  FINETUNE_CHECK(is_object());
  for (auto& member : members_) {
    if (member.first != key) continue;
    member.second = std::move(value);
    return;
  }
  members_.emplace_back(key, std::move(value));
}

void JsonValue::erase(std::string_view key) {
  std::erase_if(members_, [&](const auto& member) { return member.first == key; });
}

std::string JsonValue::text() const {
  std::string out;
  append_to(out, std::nullopt, 0);
  return out;
}

std::string JsonValue::indented(int blanks) const {
  std::string out;
  append_to(out, blanks, 0);
  return out;
}

void JsonValue::append_to(std::string& out, std::optional<int> blanks, int margin) const {
  if (kind_ == Kind::scalar) out += text_;
  if (kind_ == Kind::string) append_json_string(text_, out);
  if (kind_ == Kind::scalar || kind_ == Kind::string) return;
  const auto begin_line = [&](int width) {
    if (blanks) out.append("\n").append(size_t(width), ' ');
  };
  const int inner = margin + blanks.value_or(0);
  bool is_first = true;
  const auto begin = [&] {
    if (!std::exchange(is_first, false)) out += ',';
    begin_line(inner);
  };
  out += is_array() ? '[' : '{';
  for (const JsonValue& item : items_) {
    begin();
    item.append_to(out, blanks, inner);
  }
  for (const auto& [name, value] : members_) {
    begin();
    append_json_string(name, out);
    out += blanks ? ": " : ":";
    value.append_to(out, blanks, inner);
  }
  if (!is_first) begin_line(margin);
  out += is_array() ? ']' : '}';
}

}  // namespace finetune
