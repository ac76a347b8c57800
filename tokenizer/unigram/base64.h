// Decodes base64 (RFC 4648, section 4).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace finetune {

// Returns nothing if a character is not a base64 digit, or the padding is missing.
inline std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const auto value_of = [](char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
  };
  size_t length = text.size();
  while (length > 0 && text[length - 1] == '=' && text.size() - length < 2) --length;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  for (size_t i = 0; i < length; ++i) {
    const int value = value_of(text[i]);
    if (value < 0) return std::nullopt;
    bits = bits << 6 | uint32_t(value);
    if (i % 4 != 0) out.push_back(char(bits >> (6 - i % 4 * 2) & 0xFF));
  }
  return out;
}

}  // namespace finetune
