// Rewrites the tokens of a Python literal one by one.
#include "data/questions/python_literal.h"

#include <algorithm>

#include "core/text/quoted_string.h"

namespace finetune {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string json_word(std::string_view word) {
  if (word == "None") return "null";
  if (word == "True") return "true";
  if (word == "False") return "false";
  return std::string(word);
}

}  // namespace

std::string json_of_python(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '\'' || c == '"') {
      const std::optional<std::string> string = read_quoted(text, at);
      if (!string) return std::string(text);  // neither a literal nor JSON
      out += double_quoted(*string);
    } else if (text.substr(at).starts_with("array(")) {
      at += 6;
    } else if (text.substr(at).starts_with(", dtype=") || c == ')') {
      at = std::min(text.find(')', at), text.size() - 1) + 1;
    } else if (is_name_character(c)) {
      const size_t begin = at;
      while (at < text.size() && is_name_character(text[at])) ++at;
      out += json_word(text.substr(begin, at - begin));
    } else {
      out += c;
      ++at;
    }
  }
  return out;
}

}  // namespace finetune
