// Bytes that a terminal would obey, escaped.
#include "core/text/printable.h"

#include <algorithm>
#include <cstdint>

#include "core/text/text.h"

namespace finetune {
namespace {

struct Character {
  uint32_t code = 0;
  size_t size = 0;
};

// The character at the beginning of UTF-8; of one that is cut off what there is.
Character first_character(std::string_view text) {
  auto byte = [&](size_t i) {
    return i < text.size() ? uint32_t(static_cast<unsigned char>(text[i])) : 0;
  };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), std::min<size_t>(2, text.size())};
  if (lead < 0xF0) {
    return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F),
            std::min<size_t>(3, text.size())};
  }
  return {0x10000, std::min<size_t>(4, text.size())};  // none of those beyond is special here
}

bool is_special(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) ||  // controls
         code == 0x2028 || code == 0x2029 ||              // separators of lines and paragraphs
         code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);  // direction
}

std::string hexadecimal(std::string_view prefix, uint32_t value, int digits) {
  std::string out(prefix);
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out += "0123456789abcdef"[(value >> shift) & 15];
  }
  return out;
}

std::string escaped(uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\t') return "\\t";
  if (code == '\r') return "\\r";
  return code < 0x80 ? hexadecimal("\\x", code, 2) : hexadecimal("\\u", code, 4);
}

// Where the character that byte `at` is of begins.
size_t character_begin(std::string_view text, size_t at) {
  for (int i = 0; i < 3 && at > 0 && at < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80) break;
    --at;
  }
  return at;
}

}  // namespace

std::string printable(std::string_view text, size_t limit) {
  const size_t end = limit < text.size() ? character_begin(text, limit) : text.size();
  std::string out;
  size_t valid_end = 0;  // bytes before it are valid UTF-8
  for (size_t i = 0; i < end;) {
    if (i == valid_end) valid_end = i + std::min(end - i, invalid_utf8(text.substr(i, end - i)));
    if (i == valid_end) {
      out += hexadecimal("\\x", static_cast<unsigned char>(text[i]), 2);
      valid_end = ++i;
      continue;
    }
    const Character c = first_character(text.substr(i));
    if (is_special(c.code))
      out += escaped(c.code);
    else
      out += text.substr(i, c.size);
    i += c.size;
  }
  if (end < text.size()) out += "…";
  return out;
}

std::string printable_message(std::string_view text, size_t most) {
  if (text.size() > 2 * most) {  // before anything of its size is made
    const size_t tail = character_begin(text, text.size() - most);
    return printable_message(concat(text.substr(0, character_begin(text, most)), text.substr(tail)),
                             most);
  }
  std::string line = printable(text);
  if (line.size() <= most) return line;
  const size_t head = character_begin(line, most * 2 / 3);
  const size_t tail = character_begin(line, line.size() - most / 4);
  return concat(line.substr(0, head), " … ", line.substr(tail));
}

std::string printable_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (size_t i = 0; i < json.size();) {
    const Character c = first_character(json.substr(i));
    // What is below 0x20 and not escaped stands between the values.
    if (c.code >= 0x7F && is_special(c.code))
      out += hexadecimal("\\u", c.code, 4);
    else
      out += json.substr(i, c.size);
    i += c.size;
  }
  return out;
}

}  // namespace finetune
