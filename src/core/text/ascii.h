// ASCII characters, and replacing parts of a text.
#pragma once

#include <string>
#include <string_view>

namespace finetune {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Replaces every `from`, which must not be empty, by `by`. Replaced text is not searched again.
inline void replace_all(std::string& text, std::string_view from, std::string_view by) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + by.size())) {
    text.replace(at, from.size(), by);
  }
}

}  // namespace finetune
