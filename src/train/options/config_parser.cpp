// Reads the subset of TOML that options need.
#include "train/options/config_parser.h"

#include <algorithm>
#include <cctype>

#include "core/text/utf8.h"

namespace finetune {

ConfigParser::ConfigParser(std::string_view text, const std::string& file, ExitCode code)
    : text_(text), file_(file), code_(code) {
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  if (size_t bad = invalid_utf8(text_); bad != std::string_view::npos) {
    line_ += int(std::count(text_.begin(), text_.begin() + ptrdiff_t(bad), '\n'));
    fail("is not valid UTF-8");
  }
}

std::vector<ConfigEntry> ConfigParser::parse_entries() {
  std::vector<ConfigEntry> entries;
  for (skip_lines(); !at_end() && peek() != '['; skip_lines()) {
    ConfigEntry entry = parse_entry();
    for (const auto& earlier : entries) {
      if (earlier.name == entry.name) {
        fail("option ", in_quotes(entry.name), " occurs twice (first in line ", earlier.line, ")");
      }
    }
    entries.push_back(std::move(entry));
    if (entries.size() > kMostOptions) fail("more entries than there are options");
  }
  return entries;
}

char ConfigParser::take() {
  char c = text_[at_++];
  if (c == '\n') ++line_;
  return c;
}

void ConfigParser::skip_blanks() {
  while (peek() == ' ' || peek() == '\t') ++at_;
}

void ConfigParser::skip_comment() {
  if (peek() != '#') return;
  while (!at_end() && peek() != '\n') ++at_;
}

void ConfigParser::skip_lines() {
  for (;;) {
    skip_blanks();
    skip_comment();
    if (peek() != '\n' && peek() != '\r') return;
    take();
  }
}

std::string ConfigParser::parse_name_of_entry() {
  std::string name = parse_name();
  skip_blanks();
  if (peek() != '=') fail("'=' is missing after ", in_quotes(name));
  ++at_;
  skip_blanks();
  return name;
}

void ConfigParser::end_entry(const std::string& name) {
  skip_blanks();
  skip_comment();
  if (at_end() || peek() == '\n' || peek() == '\r') return;
  fail("unexpected text after the value of ", in_quotes(name));
}

ConfigEntry ConfigParser::parse_entry() {
  ConfigEntry entry;
  entry.line = line_;
  entry.name = parse_name_of_entry();
  entry.is_array = peek() == '[';
  if (entry.is_array)
    parse_array(entry.values);
  else
    entry.values.push_back(parse_scalar());
  end_entry(entry.name);
  return entry;
}

std::string ConfigParser::parse_name() {
  std::string name;
  if (peek() == '"' || peek() == '\'') {
    name = parse_string();
  } else {
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '-' || peek() == '_') {
      name += take();
    }
  }
  if (name.empty()) fail("a line must be: name = value");
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

void ConfigParser::parse_array(std::vector<std::string>& values) {
  ++at_;
  for (;;) {
    skip_lines();
    if (at_end()) fail("an array is not closed: ']' is missing");
    if (peek() == ']') break;
    if (peek() == '[') fail("an array inside an array is not used here");
    values.push_back(parse_scalar());
    skip_lines();
    if (peek() == ',')
      ++at_;
    else if (peek() != ']')
      fail("',' or ']' is missing in an array");
  }
  ++at_;
}

std::string ConfigParser::parse_scalar() {
  if (peek() == '"' || peek() == '\'') return parse_string();
  std::string_view rest = text_.substr(at_);
  std::string word(rest.substr(0, rest.find_first_of(" \t\r\n,]}#")));
  at_ += word.size();
  if (word == "true" || word == "false") return word;
  std::string number;
  for (size_t i = 0; i < word.size(); ++i) {
    bool between_digits = i > 0 && i + 1 < word.size() && std::isdigit(word[i - 1] & 0x7F) &&
                          std::isdigit(word[i + 1] & 0x7F);
    if (word[i] == '_' && between_digits) continue;
    number += word[i];
  }
  if (number.empty()) fail("a value is missing");
  if (!parse_double(number)) {
    fail(in_quotes(word), " is not a value: write numbers, true, false, or text in \"quotes\"");
  }
  return number[0] == '+' ? number.substr(1) : number;
}

std::string ConfigParser::parse_string() {
  char quote = take();
  if (text_.substr(at_, 2) == std::string(2, quote)) fail("multi-line strings are not used here");
  std::string out;
  for (;;) {
    if (at_end() || peek() == '\n') fail("a string is not closed");
    char c = take();
    if (c == quote) return out;
    if (c == '\\' && quote == '"')
      parse_escape(out);
    else
      out += c;
  }
}

void ConfigParser::parse_escape(std::string& out) {
  constexpr std::string_view letters = "btnfr\"\\", values = "\b\t\n\f\r\"\\";
  char c = at_end() ? '\0' : take();
  if (size_t i = letters.find(c); i != std::string_view::npos && c != '\0') {
    out += values[i];
    return;
  }
  size_t digits = c == 'u' ? 4 : c == 'U' ? 8 : 0;
  std::string_view hex = text_.substr(std::min(at_, text_.size()), digits);
  uint32_t code = 0;
  auto result = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
  bool valid = digits > 0 && hex.size() == digits && result.ptr == hex.data() + digits &&
               code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  if (!valid) {
    fail(in_quotes(std::string{'\\', c}), " is not an escape of TOML (write \\\\ for a backslash)");
  }
  at_ += digits;
  utf8::append(code, out);
}

}  // namespace finetune
