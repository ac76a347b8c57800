// Reads the wire format of protocol buffers, field by field, with bounds checks.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace finetune {

// Reads the varint at the front of `bytes` and moves `bytes` behind it; nothing if it is cut off.
inline std::optional<uint64_t> take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (unsigned i = 0; i < 10 && i < bytes.size(); ++i) {
    uint64_t byte = uint8_t(bytes[i]);
    value |= (byte & 127) << (7 * i);
    if (byte < 128) {
      bytes.remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

struct ProtoField {
  uint64_t number = 0;
  uint64_t value = 0;      // varint, fixed32, fixed64
  std::string_view bytes;  // length-delimited
};

// Calls `visit(field)` for each field of a message; returns false if the message is malformed.
template <typename Visit>
bool for_each_field(std::string_view message, Visit&& visit) {
  while (!message.empty()) {
    std::optional<uint64_t> tag = take_varint(message);
    if (!tag) return false;
    ProtoField field{*tag >> 3, 0, {}};
    size_t length = 0;
    switch (*tag & 7) {
      case 0: {
        std::optional<uint64_t> value = take_varint(message);
        if (!value) return false;
        field.value = *value;
        break;
      }
      case 1:
        length = 8;
        break;
      case 5:
        length = 4;
        break;
      case 2: {
        std::optional<uint64_t> size = take_varint(message);
        if (!size || *size > message.size()) return false;
        field.bytes = message.substr(0, *size);
        message.remove_prefix(*size);
        break;
      }
      default:
        return false;
    }
    if (length > message.size()) return false;
    if (length > 0) std::memcpy(&field.value, message.data(), length);
    message.remove_prefix(length);
    visit(field);
  }
  return true;
}

}  // namespace finetune
