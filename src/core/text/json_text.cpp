// Adds an exponent to integers of 20 digits and more in JSON text, so that they can be parsed.
#include "core/text/json_text.h"

#include <algorithm>

#include "core/text/text.h"

namespace finetune {
namespace {

constexpr size_t kMostDigits = 19;  // fit an unsigned integer of 64 bits

// Returns the place behind the string that begins at `begin`, or the text's end.
size_t end_of_string(std::string_view json, size_t begin) {
  size_t at = begin + 1;
  while (at < json.size() && json[at] != '"') at += json[at] == '\\' ? 2 : 1;
  return std::min(at + 1, json.size());
}

bool long_integer(std::string_view number) {
  const std::string_view digits = number.substr(number.starts_with('-') ? 1 : 0);
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) return false;
  return digits.size() > kMostDigits || (digits.size() < number.size() && !parse_int(number));
}

}  // namespace

std::string with_long_integers_as_doubles(std::string_view json) {
  std::string out;
  out.reserve(json.size() + 16);
  for (size_t at = 0; at < json.size();) {
    size_t end = at + 1;
    if (json[at] == '"') end = end_of_string(json, at);
    const bool number = json[at] == '-' || (json[at] >= '0' && json[at] <= '9');
    if (number) end = std::min(json.find_first_not_of("+-.0123456789eE", at), json.size());
    out += json.substr(at, end - at);
    if (number && long_integer(json.substr(at, end - at))) out += "e0";
    at = end;
  }
  return out;
}

}  // namespace finetune
