// Escapes bytes that would control a terminal.
#include "core/text/printable.h"

#include <algorithm>
#include <cstdint>

#include "core/text/text.h"
#include "core/text/utf8.h"

namespace finetune {
namespace {

bool is_special(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) ||  // controls
         code == 0x2028 || code == 0x2029 ||              // separators of lines and paragraphs
         code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) ||  // direction
         code == 0xFFFE || code == 0xFFFF;      // not characters: XML 1.0 forbids them
}

std::string hexadecimal(std::string_view prefix, uint32_t value, int digits) {
  std::string out(prefix);
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out += "0123456789abcdef"[(value >> shift) & 15];
  }
  return out;
}

std::string escaped(char32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\t') return "\\t";
  if (code == '\r') return "\\r";
  return code < 0x80 ? hexadecimal("\\x", code, 2) : hexadecimal("\\u", code, 4);
}

// The beginning of the character that contains byte `at`.
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
    const utf8::Decoded d = utf8::decode(text, i);
    if (is_special(d.c))
      out += escaped(d.c);
    else
      out += text.substr(i, d.length);
    i += d.length;
  }
  if (end < text.size()) out += "…";
  return out;
}

std::string printable_message(std::string_view text, size_t most) {
  if (text.size() > 2 * most) {  // before allocating anything of its size
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
    const utf8::Decoded d = utf8::decode(json, i);
    // Unescaped control bytes can only be white space between the values.
    if (d.c >= 0x7F && is_special(d.c))
      out += hexadecimal("\\u", d.c, 4);
    else
      out += json.substr(i, d.length);
    i += d.length;
  }
  return out;
}

std::string padded(const std::string& text, size_t width, bool right) {
  const size_t length = count_code_points(text);
  const std::string room(length < width ? width - length : 0, ' ');
  return right ? room + text : text + room;
}

std::string markup_escaped(std::string_view text, size_t limit) {
  std::string out;
  for (char c : printable(text, limit)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace finetune
