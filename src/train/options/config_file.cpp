// Parses and writes config.toml, and tells how two configurations differ.
#include "train/options/config_file.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/files/files.h"
#include "core/text/printable.h"
#include "train/options/foreign_names.h"

namespace finetune {
namespace {

constexpr size_t kMostOptions = 1000;  // each is compared with all before it
constexpr size_t kLongestValue = 200;  // in a message

void append_code_point(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += char(c);
  } else if (c < 0x800) {
    out += {char(0xC0 | (c >> 6)), char(0x80 | (c & 63))};
  } else if (c < 0x10000) {
    out += {char(0xE0 | (c >> 12)), char(0x80 | ((c >> 6) & 63)), char(0x80 | (c & 63))};
  } else {
    out += {char(0xF0 | (c >> 18)), char(0x80 | ((c >> 12) & 63)), char(0x80 | ((c >> 6) & 63)),
            char(0x80 | (c & 63))};
  }
}

class ConfigParser {
 public:
  ConfigParser(std::string_view text, const std::string& file, ExitCode code)
      : text_(text), file_(file), code_(code) {}

  std::vector<ConfigEntry> parse() {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    if (size_t bad = invalid_utf8(text_); bad != std::string_view::npos) {
      line_ += int(std::count(text_.begin(), text_.begin() + ptrdiff_t(bad), '\n'));
      fail("is not valid UTF-8");
    }
    std::vector<ConfigEntry> entries;
    for (skip_lines(); !at_end(); skip_lines()) {
      ConfigEntry entry = parse_entry();
      for (const auto& earlier : entries) {
        if (earlier.name == entry.name) {
          fail("option ", in_quotes(entry.name), " occurs twice (first in line ", earlier.line,
               ")");
        }
      }
      entries.push_back(std::move(entry));
      if (entries.size() > kMostOptions) fail("more options than there are");
    }
    return entries;
  }

 private:
  template <typename... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw Error(code_, concat(file_, ":", line_, ": ", parts...));
  }

  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  char take() {
    char c = text_[at_++];
    if (c == '\n') ++line_;
    return c;
  }

  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }
  void skip_comment() {
    if (peek() != '#') return;
    while (!at_end() && peek() != '\n') ++at_;
  }
  // White space, comments and line ends.
  void skip_lines() {
    for (;;) {
      skip_blanks();
      skip_comment();
      if (peek() != '\n' && peek() != '\r') return;
      take();
    }
  }

  ConfigEntry parse_entry() {
    if (peek() == '[') fail("tables are not used here: write name = value lines only");
    ConfigEntry entry;
    entry.line = line_;
    entry.name = parse_name();
    skip_blanks();
    if (peek() != '=') fail("'=' is missing after ", in_quotes(entry.name));
    ++at_;
    skip_blanks();
    entry.is_array = peek() == '[';
    if (entry.is_array)
      parse_array(entry.values);
    else
      entry.values.push_back(parse_scalar());
    skip_blanks();
    skip_comment();
    if (!at_end() && peek() != '\n' && peek() != '\r') {
      fail("unexpected text after the value of ", in_quotes(entry.name));
    }
    return entry;
  }

  std::string parse_name() {
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

  void parse_array(std::vector<std::string>& values) {
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

  std::string parse_scalar() {
    if (peek() == '"' || peek() == '\'') return parse_string();
    std::string_view rest = text_.substr(at_);
    std::string word(rest.substr(0, rest.find_first_of(" \t\r\n,]#")));
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

  std::string parse_string() {
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

  void parse_escape(std::string& out) {
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
      fail(in_quotes(std::string{'\\', c}),
           " is not an escape of TOML (write \\\\ for a backslash)");
    }
    at_ += digits;
    append_code_point(out, code);
  }

  std::string_view text_;
  const std::string& file_;
  ExitCode code_;
  size_t at_ = 0;
  int line_ = 1;
};

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    unsigned char u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else if (u < 0x20 || u == 0x7F) {
      constexpr char digits[] = "0123456789abcdef";
      out += concat("\\u00", digits[u >> 4], digits[u & 15]);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// TOML tells a float from an integer by its point or exponent.
std::string toml_double(double value) {
  std::string text = format_number(value);
  bool whole = std::isfinite(value) && text.find_first_of(".e") == std::string::npos;
  return whole ? text + ".0" : text;
}

struct ValueWriter {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return concat(value); }
  std::string operator()(double value) const { return toml_double(value); }
  std::string operator()(const std::string& value) const { return toml_string(value); }
  std::string operator()(const std::vector<std::string>& values) const {
    std::vector<std::string> parts;
    for (const auto& value : values) parts.push_back(toml_string(value));
    return concat("[", join(parts, ", "), "]");
  }
};

const ConfigEntry* find_entry(const std::vector<ConfigEntry>& entries, const std::string& name) {
  for (const auto& entry : entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

bool same_value(const std::string& a, const std::string& b) {
  if (a == b) return true;
  auto x = parse_double(a), y = parse_double(b);
  return x && y && *x == *y;
}

bool same_entry(const ConfigEntry* a, const ConfigEntry* b) {
  if (!a || !b) return a == b;
  return std::equal(a->values.begin(), a->values.end(), b->values.begin(), b->values.end(),
                    same_value);
}

std::string shown(const ConfigEntry* entry) {
  if (!entry) return "not set";
  if (entry->values.empty()) return "none";
  return printable(join(entry->values, ", "), kLongestValue);
}

}  // namespace

std::vector<ConfigEntry> parse_config_text(std::string_view text, const std::string& file_name,
                                           ExitCode code) {
  return ConfigParser(text, file_name, code).parse();
}

std::vector<ConfigEntry> read_config(const fs::path& path, ExitCode code) {
  return parse_config_text(read_text_input(path, code), path.string(), code);
}

void check_config_names(const std::vector<ConfigEntry>& entries,
                        const std::vector<std::string>& known, const std::string& file_name) {
  for (const auto& entry : entries) {
    if (std::find(known.begin(), known.end(), entry.name) != known.end()) continue;
    auto has = [&](std::string_view own) {
      return std::find(known.begin(), known.end(), own) != known.end();
    };
    if (const auto hint = foreign_option_hint(entry.name, has)) {
      throw usage_error(file_name, ":", entry.line, ": ", *hint);
    }
    auto near = closest_match(entry.name, known);
    throw usage_error(file_name, ":", entry.line, ": unknown option ", in_quotes(entry.name),
                      near ? concat(" (did you mean ", *near, "?)") : std::string());
  }
}

std::string write_config(const std::vector<ConfigItem>& items, std::string_view comment) {
  std::string text;
  if (!comment.empty()) text = concat("# ", comment, "\n");
  for (const auto& item : items) {
    text += concat(item.name, " = ", std::visit(ValueWriter(), item.value), "\n");
  }
  return text;
}

std::vector<std::string> config_differences(const std::vector<ConfigEntry>& there,
                                            const std::vector<ConfigEntry>& now,
                                            const std::vector<std::string>& names) {
  std::vector<std::string> differences;
  for (const auto& name : names) {
    const ConfigEntry* a = find_entry(there, name);
    const ConfigEntry* b = find_entry(now, name);
    if (!same_entry(a, b)) {
      differences.push_back(concat(name, " (", shown(a), " there, ", shown(b), " now)"));
    }
  }
  return differences;
}

}  // namespace finetune
