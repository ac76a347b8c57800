// The grammar of the JSON reader: white space, strings, numbers, nesting, and the place of a fault.
#include "data/json_cursor.h"

#include <algorithm>
#include <array>

#include "core/text/ascii.h"
#include "core/text/text.h"
#include "core/text/utf8.h"

namespace finetune {
namespace {

constexpr int kMostNesting = 512;

// Bytes that end the plain part of a string: quote, backslash, control bytes.
constexpr std::array<bool, 256> kStringEnd = [] {
  std::array<bool, 256> table{};
  for (size_t c = 0; c < 0x20; ++c) table[c] = true;
  table['"'] = table['\\'] = true;
  return table;
}();

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Length of the number at the beginning of `text`, 0 if there is none.
size_t number_length(std::string_view text) {
  size_t at = 0;
  auto digits = [&] {
    size_t begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at > begin;
  };
  auto next_is = [&](char a, char b) {
    return at < text.size() && (text[at] == a || text[at] == b);
  };
  if (next_is('-', '-')) ++at;
  if (next_is('0', '0'))
    ++at;
  else if (!digits())
    return 0;
  if (next_is('.', '.')) {
    ++at;
    if (!digits()) return 0;
  }
  if (next_is('e', 'E')) {
    ++at;
    if (next_is('+', '-')) ++at;
    if (!digits()) return 0;
  }
  return at;
}

uint32_t hex_unit(std::string_view raw, size_t at) {
  uint32_t unit = 0;
  for (size_t i = 0; i < 4; ++i) unit = unit << 4 | uint32_t(hex_digit(raw[at + i]));
  return unit;
}

}  // namespace

void JsonCursor::fail_at_end() {
  at_ = text_.size();
  fail("the text ends in the middle of a value");
}

std::string JsonCursor::next_character() const {
  size_t size = 1;
  while (at_ + size < text_.size() &&
         (static_cast<unsigned char>(text_[at_ + size]) & 0xC0) == 0x80) {
    ++size;
  }
  return in_quotes(text_.substr(at_, size));
}

void JsonCursor::skip_space() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
    ++at_;
  }
}

bool JsonCursor::at_end() {
  skip_space();
  return at_ == text_.size();
}

char JsonCursor::peek() {
  skip_space();
  if (at_ == text_.size()) fail_at_end();
  return text_[at_];
}

bool JsonCursor::take(char c) {
  if (peek() != c) return false;
  ++at_;
  return true;
}

void JsonCursor::expect(char c, const char* what) {
  if (!take(c)) fail(concat(what, " is expected, not ", next_character()));
}

JsonString JsonCursor::string() {
  expect('"', "a string");
  const size_t begin = at_;
  bool escaped = false;
  for (;;) {
    while (at_ < text_.size() && !kStringEnd[static_cast<unsigned char>(text_[at_])]) ++at_;
    if (at_ == text_.size()) fail_at_end();
    char c = text_[at_];
    if (c == '"') {
      ++at_;
      return {text_.substr(begin, at_ - 1 - begin), begin, escaped};
    }
    if (c != '\\') fail("a control character inside a string must be escaped");
    escaped = true;
    if (at_ + 1 == text_.size()) fail_at_end();
    char kind = text_[at_ + 1];
    size_t length = kind == 'u' ? 6 : 2;
    if (std::string_view("\"\\/bfnrtu").find(kind) == std::string_view::npos) {
      fail("an unknown escape in a string");
    }
    for (size_t i = 2; i < length; ++i) {
      if (at_ + i == text_.size()) fail_at_end();
      if (hex_digit(text_[at_ + i]) < 0) fail("\\u needs four hexadecimal digits");
    }
    at_ += length;
  }
}

std::string_view JsonCursor::scalar() {
  char first = peek();
  std::string_view rest = text_.substr(at_);
  for (std::string_view word : {"true", "false", "null"}) {
    if (first != word[0]) continue;
    if (rest.substr(0, word.size()) == word) {
      at_ += word.size();
      return word;
    }
    if (rest == word.substr(0, rest.size())) {
      fail_at_end();
    }
  }
  size_t length = number_length(rest);
  if (length == 0) {
    if (is_digit(first) || first == '-') {
      if (rest.find_first_not_of("+-.0123456789eE") == std::string_view::npos) fail_at_end();
      fail("a malformed number");
    }
    fail(concat("a value is expected, not ", next_character()));
  }
  at_ += length;
  return rest.substr(0, length);
}

void JsonCursor::skip_value() {
  skip_nested(0);
}

void JsonCursor::skip_nested(int depth) {
  if (depth > kMostNesting) fail("nested too deeply");
  char first = peek();
  if (first == '{')
    object([&](const JsonString&) { skip_nested(depth + 1); });
  else if (first == '[')
    array([&] { skip_nested(depth + 1); });
  else if (first == '"')
    string();
  else
    scalar();
}

void append_text(const JsonString& string, std::string& out) {
  const std::string_view raw = string.raw;
  for (size_t i = 0; i < raw.size();) {
    size_t plain = std::min(raw.find('\\', i), raw.size());
    out.append(raw, i, plain - i);
    i = plain;
    if (i == raw.size()) return;
    char kind = raw[i + 1];
    if (kind != 'u') {
      constexpr std::string_view kinds = "bfnrt", meanings = "\b\f\n\r\t";
      size_t known = kinds.find(kind);
      out += known == std::string_view::npos ? kind : meanings[known];
      i += 2;
      continue;
    }
    uint32_t unit = hex_unit(raw, i + 2);
    size_t length = 6;
    if (unit >= 0xD800 && unit < 0xE000) {
      bool pair = unit < 0xDC00 && raw.substr(std::min(i + 6, raw.size()), 2) == "\\u";
      uint32_t low = pair ? hex_unit(raw, i + 8) : 0;
      if (low < 0xDC00 || low >= 0xE000) {
        throw JsonFault{string.at + i, concat("half of a surrogate pair (", raw.substr(i, 6), ")")};
      }
      unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
      length = 12;
    }
    utf8::append(unit, out);
    i += length;
  }
}

std::string text_of(const JsonString& string) {
  if (!string.escaped) return std::string(string.raw);
  std::string out;
  append_text(string, out);
  return out;
}

}  // namespace finetune
